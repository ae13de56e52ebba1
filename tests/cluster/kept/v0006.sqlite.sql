BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0006');
CREATE TABLE artifact_uses (
	artifact VARCHAR(64) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_artifact_uses PRIMARY KEY (artifact, pipeline_id), 
	CONSTRAINT fk_artifact_uses_artifact FOREIGN KEY(artifact) REFERENCES artifacts (sha256) ON DELETE RESTRICT, 
	CONSTRAINT fk_artifact_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE
);
CREATE TABLE artifacts (
	sha256 VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	language VARCHAR(8) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, place TEXT, 
	CONSTRAINT pk_artifacts PRIMARY KEY (sha256)
);
INSERT INTO "artifacts" VALUES('abababababababababababababababababababababababababababababababab','libplane.so','python',1,1,NULL);
CREATE TABLE checkpoints (
	job_id VARCHAR(200) NOT NULL, 
	epoch INTEGER NOT NULL, 
	generation INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	checkpoint_type VARCHAR(16) NOT NULL, 
	start_time BIGINT NOT NULL, 
	finish_time BIGINT, 
	events JSON NOT NULL, 
	operators JSON NOT NULL, history INTEGER DEFAULT '0' NOT NULL, retained BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_checkpoints PRIMARY KEY (job_id, epoch), 
	CONSTRAINT ck_checkpoints_checkpoint_type CHECK (checkpoint_type IN ('scheduled', 'stopping')), 
	CONSTRAINT ck_checkpoints_state CHECK (state IN ('inprogress', 'ready', 'failed')), 
	CONSTRAINT fk_checkpoints_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "checkpoints" VALUES('job_oHd7sRisNw',7,1,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_rLbsmHDYmy',7,2,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_2IJyFAl690',7,3,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_SbprTmbMe2',7,4,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_mCNcmsU8DB',7,5,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_SiwMFlRtxN',7,6,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
CREATE TABLE connection_profiles (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	name TEXT NOT NULL, 
	connector TEXT NOT NULL, 
	description TEXT NOT NULL, 
	config JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT uq_connection_profiles_id UNIQUE (id), 
	CONSTRAINT uq_connection_profiles_name UNIQUE (name)
);
INSERT INTO "connection_profiles" VALUES(1,'cp_3fdGmNFIAG','p','sqlite','','{"uri": "gAAAAABrB3bJFiVrAfy4Q-fy2hESQlvhbyoncqXwHLE7Amj3jtzRi6lXivCUjcNrDQ1vbvyMBqPQ-XMIKMNF5a2OpPWGNm3Svw=="}',1795651273043245,1795651273043245);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_QJoqamJxFU','pl_Failed');
CREATE TABLE connection_tables (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	name TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	table_type VARCHAR(8) NOT NULL, 
	connector TEXT NOT NULL, 
	profile_id VARCHAR(200), 
	config JSON NOT NULL, 
	schema JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT ck_connection_tables_table_type CHECK (table_type IN ('source', 'sink', 'lookup')), 
	CONSTRAINT fk_connection_tables_profile_id FOREIGN KEY(profile_id) REFERENCES connection_profiles (id) ON DELETE RESTRICT, 
	CONSTRAINT uq_connection_tables_id UNIQUE (id), 
	CONSTRAINT uq_connection_tables_key UNIQUE ("key")
);
INSERT INTO "connection_tables" VALUES(1,'ct_QJoqamJxFU','t','t','source','sqlite','cp_3fdGmNFIAG','{}','{}',1795651273071612);
CREATE TABLE job_log (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	job_id VARCHAR(200) NOT NULL, 
	created_at BIGINT NOT NULL, 
	generation INTEGER NOT NULL, 
	level VARCHAR(8) NOT NULL, 
	message TEXT NOT NULL, 
	details TEXT NOT NULL, 
	operator_id TEXT, 
	task_index INTEGER, 
	error_domain VARCHAR(16), 
	CONSTRAINT ck_job_log_error_domain CHECK (error_domain IN ('user', 'external', 'internal')), 
	CONSTRAINT ck_job_log_level CHECK (level IN ('info', 'warn', 'error')), 
	CONSTRAINT fk_job_log_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_job_log_id UNIQUE (id)
);
INSERT INTO "job_log" VALUES(1,'jlm_7yReyFaZjO','job_oHd7sRisNw',1795651273157115,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_ErvfQtPNnM','job_rLbsmHDYmy',1795651273173791,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_PcPfvgtJs8','job_2IJyFAl690',1795651273201122,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_ar7Xd3KMwN','job_SbprTmbMe2',1795651273224701,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_lNuv7lIh1x','job_mCNcmsU8DB',1795651273259553,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_hPAQllGDMV','job_SiwMFlRtxN',1795651273284196,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_statuses (
	job_id VARCHAR(200) NOT NULL, 
	state VARCHAR(24) NOT NULL, 
	state_since BIGINT NOT NULL, 
	generation INTEGER NOT NULL, 
	controller TEXT, 
	start_time BIGINT, 
	finish_time BIGINT, 
	tasks INTEGER, 
	failure_message TEXT, 
	failure_domain VARCHAR(16), 
	restarts INTEGER NOT NULL, 
	restart_nonce INTEGER NOT NULL, 
	settings JSON NOT NULL, 
	worker JSON, restored INTEGER DEFAULT '0' NOT NULL, history INTEGER DEFAULT '0' NOT NULL, epoch INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_job_statuses PRIMARY KEY (job_id), 
	CONSTRAINT ck_job_statuses_failure_domain CHECK (failure_domain IN ('user', 'external', 'internal')), 
	CONSTRAINT ck_job_statuses_state CHECK (state IN ('Created', 'Compiling', 'Scheduling', 'Running', 'Rescaling', 'Restarting', 'Recovering', 'CheckpointStopping', 'Stopping', 'Stopped', 'Finishing', 'Finished', 'Failing', 'Failed')), 
	CONSTRAINT fk_job_statuses_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_statuses" VALUES('job_vVtG60givz','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_oHd7sRisNw','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJfltxXtaFdevvG74tGEhhvhRQ5UAOtYwwP2tJCTLtnbZ1fjK2Nwm46xgIWykwVQKHPNz9pEERh7ijxLL9-m6W8izYyU1Ya1ixdYN9T_oESu_d9XZA5DjRpKiM7xl8Kgkq"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_rLbsmHDYmy','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJlVbBm_aEUva9tI3dJ5nKiAzLl13i7YxxAhnh-6_hQ7o_KZqy0SRu-ocE5eHrCN2WxHk4Ndt6fbrp0JRckkwTHlkkP8r2SH1yjaEuEwZw_igMjmfawund0forr9CXWI7e"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_2IJyFAl690','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJqB9QXgDxr2LPMiO4b1OOWtr4ztKBc_0d5tcSQhEi8ZrIP93Pvz3GZeuZGNSvzPcrE88wE084zstGpVDqlQi0HW8-_XWAKxgq5NQ7DwqS37EXHfINOgrpxg1mGsPEBI9A"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_SbprTmbMe2','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJ8-jwMocFMeYmVo-lPmbFkat7m9PEbx-VNT7x4qzI6OuYdYMAvTX9iKZzfD3GLD7nxHunRTQeZLYR8jzPVS4bYBSpLrtUDGNL59Uaoj0WpS_CJ0StSStTGj6UPR4FYe47"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_mCNcmsU8DB','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJe3V4lXvAlbFZegGGfKQTD4mKgEoWNEa_0A480IG7oaXXdwtP9FDGoETUCingzLsOKsZ3WYLzDbehgHF8GhKhsd5X94s7mnC5LQ9lIuvc03cHXTUcWPZ8YrqIqD0r33uy"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_SiwMFlRtxN','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bJmnme8a1NYz7ai8bEKlLZgIVXZ3Osm9c_fxyAskBs0LNeukDXSR-szM4K5I739uCxBJIVlsBXV12rdGyq84RteAhHOi0EVlFKguLEgH5kDnMAhvxEn5BgmFQOo5ThduqG"}',NULL,0,0,7);
CREATE TABLE jobs (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	stop VARCHAR(16) NOT NULL, 
	parallelism INTEGER NOT NULL, 
	checkpoint_interval_micros BIGINT NOT NULL, 
	ttl_micros BIGINT, 
	restart_nonce INTEGER NOT NULL, 
	restart_mode VARCHAR(8) NOT NULL, 
	history INTEGER NOT NULL, 
	env_vars JSON NOT NULL, 
	scheduler_config JSON NOT NULL, 
	revision INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, place TEXT, restore JSON, fulfilled INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT ck_jobs_restart_mode CHECK (restart_mode IN ('safe', 'force')), 
	CONSTRAINT ck_jobs_stop CHECK (stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')), 
	CONSTRAINT ck_jobs_parallelism CHECK (parallelism BETWEEN 1 AND 1024), 
	CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT uq_jobs_id UNIQUE (id), 
	CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id)
);
INSERT INTO "jobs" VALUES(1,'job_vVtG60givz','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJJk-WQjKB7HqMhvDgW-Dio1HJuSMK4uF5L3_HSin0I3rXkCYUBGdrKskO1e31M9aGBlIXqXvYO8s8oa1rEz1WS_EqJ4qSxnUw5TYVM-FnqTE="}','{}',1,1795651273114592,1795651273114592,'/nowhere/checkpoints/job_vVtG60givz',NULL,0);
INSERT INTO "jobs" VALUES(2,'job_oHd7sRisNw','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJRWKh_2b6dRDdi0mIsOqdGgcR4AFQhWgjwlA3j_2dTj3TDY0T4HmThGoybnw-dcnGR7RsxJ89YO1Iw-y5YBr612m4n5aYccb2tvU00YAnUYk="}','{}',1,1795651273153279,1795651273153279,'/nowhere/checkpoints/job_oHd7sRisNw',NULL,0);
INSERT INTO "jobs" VALUES(3,'job_rLbsmHDYmy','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJeS531AIztK96AuOMcBi3ApljJleluATKgnsUmLqlpUC1Sr6GYrsTD3FwrDYo7Ez9Mvv4J-gaqZIEWW0p37mizGH9AseRZsilVlU76Aye5d8="}','{}',1,1795651273168978,1795651273168978,'/nowhere/checkpoints/job_rLbsmHDYmy',NULL,0);
INSERT INTO "jobs" VALUES(4,'job_2IJyFAl690','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJJehc9YAadIGT9sUZ0E1KePUBuajSKpUXPoBBc40uhgdsdeZaJaWjgKB6tpyddeuDSw67N9XoZ36dzpuXdXgxqi3s-RiozTn1FyTN8F66CwA="}','{}',2,1795651273176618,1795651273199536,'/nowhere/checkpoints/job_2IJyFAl690',NULL,0);
INSERT INTO "jobs" VALUES(5,'job_SbprTmbMe2','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJSNabPgGNLeCV4IZSQkVspKSMnSwTY9ohoJj_1qy5bo0-cVRFvVMo_wlEjXyGeTJKT325Ygl6gq6ePCqQ9hRv9DGL6NdVJ4Y3SkKaSxQwmDU="}','{}',2,1795651273205321,1795651273223968,'/nowhere/checkpoints/job_SbprTmbMe2',NULL,0);
INSERT INTO "jobs" VALUES(6,'job_mCNcmsU8DB','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJE5xveYGNv3UaioQVzYhDKRr--XVgpFY-tbdQIPczdIQEELRX8YBUAph4zYDEc0jby5tJNs5hLCO728odWCg6Gb-qfG4FjUWhNYLdqaNmEZg="}','{}',1,1795651273240740,1795651273240740,'/nowhere/checkpoints/job_mCNcmsU8DB',NULL,0);
INSERT INTO "jobs" VALUES(7,'job_SiwMFlRtxN','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3bJFOuXLmnzunp0j30pNSLZj4Ik_ikwqKOv5JaE_bIRFxrvWAhDGN-lK1C7rzV73A0uEgVk3Zzt-y5aYk-FpS7cTFftvXU12EOWSBobsd9JCwk="}','{}',1,1795651273272116,1795651273272116,'/nowhere/checkpoints/job_SiwMFlRtxN',NULL,0);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrB3bJ7mYXOb6tCTUnuCBos3qioaRrJKjXyYOqp0l08-I3jelKCJXu_PviecxyErjqoJ526wmg9ho5U5QNhV5PV8eIvA==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, seen_at BIGINT, deaths INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1,1795651273105422,0);
CREATE TABLE leftovers (
	place TEXT NOT NULL, 
	CONSTRAINT pk_leftovers PRIMARY KEY (place)
);
INSERT INTO "leftovers" VALUES('/nowhere/job_gone');
CREATE TABLE pipelines (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	name TEXT NOT NULL, 
	"query" TEXT NOT NULL, 
	udfs JSON NOT NULL, 
	graph JSON NOT NULL, 
	program JSON NOT NULL, 
	tags JSON NOT NULL, 
	state_url TEXT, 
	is_preview BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT uq_pipelines_id UNIQUE (id)
);
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJ9OZhc7wjQYHwG6qpd1Keyk-gKrRZT1ZMG740nXereZYZJ9ihKCGaGpdjUtwQT6Gua6EDm-CuqkRoNjHyDMmCCH0059qN14UZ73WmoibEQkpxY8raWGoFUowxTnswMj1W"}','{"team": "a"}',NULL,0,1795651273114592);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJSQ6R0_fSYV-QcHh33fCSRIQ5QZTVSX9S3EyQ9YUnhwDNQ2v7yZ8SkR-VxPViA2PQfIW9mXrvL0NlKXpMoXO3GfipJbGtIepV7HAR0Q0kF631SlrNJLSZGK_r2zvi-KTO"}','{"team": "a"}',NULL,0,1795651273153279);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJhv_JB2fQZUVReyFvY2aWboLWQrEBSbPUyDebQR1OJDzdtahhd3PeGxETjjIhZohMLO31oyDV6lvCXdd-vVTRlSXo1pQvZEI8aOHDnLt6zeWBXlpoCo_VlyjfViDq-Z1p"}','{"team": "a"}',NULL,0,1795651273168978);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJIznpKfDxVGI3uM8fn1vYgCXWUrSm4QPo0pvu34oi1kxhEuCMFBigr6rEdFg9cVzHvMLaTu0-y_NK2ytehLGLXQZ350M58vnE5qkdrAaflhljuC6ii-UikMdXTvt67xnY"}','{"team": "a"}',NULL,0,1795651273176618);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJQ8lvqLdccC-o1Y2PqtuWvBXgki1g0uor_l01E18FAS9TUG3yT-CssK95JnZpT6odbKzi6jNSZN7svaxvhk5qXtmUL5rr-zX5RAkNaBlKLIi_khltJlGZVN2wfdZoAlEE"}','{"team": "a"}',NULL,0,1795651273205321);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJowlHUkCLpranGSssQvWw506HWgFElhtoaaoVHR4gl1X1kWOAEZyboKXOBOpAiIXVYzHI9ozoZ9tCsCd8wVyZ52IidDg7l6VCJVUFPy1XKWX8TtktnJ3VK2p3U1bZLODH"}','{"team": "a"}',NULL,0,1795651273240740);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bJCViTMMNeKIm_Sw4sgIpagLd53cs8fwYGfK3U0OuPkHSDHZwLc2AByEApaINFlIzaJI6fmBh9L9DqmJhHB2blWgm--FW7eUwF3TMFZSslNKczh-B733B8FR8f_qNQUJLq"}','{"team": "a"}',NULL,0,1795651273272116);
CREATE TABLE udfs (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(200) NOT NULL, 
	prefix TEXT NOT NULL, 
	name TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	language VARCHAR(8) NOT NULL, 
	definition TEXT NOT NULL, 
	description TEXT, 
	artifact VARCHAR(64), 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT ck_udfs_language CHECK (language IN ('python', 'rust', 'c')), 
	CONSTRAINT fk_udfs_artifact FOREIGN KEY(artifact) REFERENCES artifacts (sha256) ON DELETE RESTRICT, 
	CONSTRAINT uq_udfs_id UNIQUE (id), 
	CONSTRAINT uq_udfs_key UNIQUE ("key")
);
INSERT INTO "udfs" VALUES(1,'udf_z1G1deq2Tq','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795651273091525,1795651273091525);
CREATE INDEX ix_pipelines_is_preview ON pipelines (is_preview);
CREATE INDEX ix_connection_tables_profile_id ON connection_tables (profile_id);
CREATE INDEX ix_udfs_artifact ON udfs (artifact);
CREATE INDEX ix_connection_table_uses_pipeline_id ON connection_table_uses (pipeline_id);
CREATE INDEX ix_job_log_job_id ON job_log (job_id);
CREATE INDEX ix_job_statuses_state ON job_statuses (state);
CREATE INDEX ix_artifact_uses_pipeline_id ON artifact_uses (pipeline_id);
CREATE INDEX ix_jobs_unfulfilled ON jobs (id) WHERE revision != fulfilled;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('connection_profiles',1);
INSERT INTO "sqlite_sequence" VALUES('connection_tables',1);
INSERT INTO "sqlite_sequence" VALUES('udfs',1);
INSERT INTO "sqlite_sequence" VALUES('pipelines',7);
INSERT INTO "sqlite_sequence" VALUES('jobs',7);
INSERT INTO "sqlite_sequence" VALUES('job_log',6);
COMMIT;
