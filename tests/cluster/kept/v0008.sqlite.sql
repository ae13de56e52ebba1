BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0008');
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
INSERT INTO "checkpoints" VALUES('job_jDMzFY9UBa',7,1,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_LN9KnxUXPY',7,2,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_6tz9xS2pou',7,3,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_wx1ohh0SqS',7,4,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_bpLutvs0vx',7,5,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_qYnuRXEOvB',7,6,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
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
INSERT INTO "connection_profiles" VALUES(1,'cp_dMkGrAJCoU','p','sqlite','','{"uri": "gAAAAABrCv5FHHblevBe-6XJH2AxEvS_K9SAa_6jbeUMqQGTY-BfOL_SiCfIE16qEJiLW_fBuyYH3uUX3Qm-7bpaEYi6Piemhw=="}',1795882565790359,1795882565790359);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_WMRd6SkGMC','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_WMRd6SkGMC','t','t','source','sqlite','cp_dMkGrAJCoU','{}','{}',1795882565831546);
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
INSERT INTO "job_log" VALUES(1,'jlm_MHiopBoQu2','job_jDMzFY9UBa',1795882565897095,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_GcYCgP9hGA','job_LN9KnxUXPY',1795882565922330,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_xISPmTsE4J','job_6tz9xS2pou',1795882565945079,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_808BWbQwFO','job_wx1ohh0SqS',1795882565956522,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_9wKarmwN5z','job_bpLutvs0vx',1795882565977956,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_WZH1hprT2o','job_qYnuRXEOvB',1795882565983965,6,'info','Running','',NULL,NULL,NULL);
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
INSERT INTO "job_statuses" VALUES('job_IG0cT9KcnR','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_jDMzFY9UBa','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5FcfDofnXiJGiQ4mNNJ7DuBq-jEwf6NbhKxReYOlX0i7NiuXy5Hdppt7SBqfcrQF8X4JL7jI3AEf8fZnjolovX96Yt4BwNpE9ObdLETKM_pr6fS8UoQJGMPL_DSWowfLgL"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_LN9KnxUXPY','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5FLQ_62JV1C1dtVbkX9lQrCHZEMt3X-aNLjeYTrXIKZ28p6YUQxpDVxsvvizJToz88QevGjatsrnMdZFKxJ-4k7kgrrfIGoygL9ntF4DL_3FZmUxiYvKpbEjxJWG1j3vu5"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_6tz9xS2pou','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5F7Jt_mGtHHAyYyQiFARgDvab-TE7LRCp1jdutVhgVNVB6DxojjMKcjpPKSMzJosgxUFoOr9WtA04JSSdWRJvaERbgEwJVlgliYVaH2gN4kxVK0IA3szXO2YLJr68wF6cs"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_wx1ohh0SqS','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5F51E3MuggoVDtYyl16OrPgjcwAA8h142MiRHUiuelyxG5MwTea3lqsgALnl6nZroZZ8yTGQKc48FpZPaQN1OR48ZJjBqPAI-ml0p3xXUFNS4HSP12JU9OcX01vo5c5QMX"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_bpLutvs0vx','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5FqEoE_16mYQtFaLOh_uG39AgJ-_JxhI8D2QM4ofUi-tSnPslW2STyiIw3hRpXpVeP2X-1iHVaM7uiYDUdiLJLrUybTzSbIbEGBWLpP5rlzJzBLn4NlyYiGdKXyR-JbypC"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_qYnuRXEOvB','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCv5FnIzAHLepNeECux2gSeUdlwLSdBBC0pGh7O0M8UB1CLomQJ86UoV3vZKXJNd3rFGDfS1u7lOOsuWVwIGSTvchAeMJPwVynqc_VEs18xzRXFpjkyi-S5z5igW6j0n3rrUZ"}',NULL,0,0,7);
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
	updated_at BIGINT NOT NULL, place TEXT, restore JSON, fulfilled INTEGER DEFAULT '0' NOT NULL, scheduler VARCHAR(16) DEFAULT 'local' NOT NULL, slices INTEGER, 
	CONSTRAINT ck_jobs_restart_mode CHECK (restart_mode IN ('safe', 'force')), 
	CONSTRAINT ck_jobs_stop CHECK (stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')), 
	CONSTRAINT ck_jobs_parallelism CHECK (parallelism BETWEEN 1 AND 1024), 
	CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT uq_jobs_id UNIQUE (id), 
	CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id)
);
INSERT INTO "jobs" VALUES(1,'job_IG0cT9KcnR','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5F9EP8G9DlBFZ3EipxiP3coi3dU62hN90nkFm3-fcFNGjkTI-NJS0PReRIbgmhfmxsb9JHs4Vd-dpq1Z785xlRP7vrPyoUmJdwueEKBRT8wqw="}','{}',1,1795882565865103,1795882565865103,'/nowhere/checkpoints/job_IG0cT9KcnR',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(2,'job_jDMzFY9UBa','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5F_aSQZE3J7Z6DCBd8jgLBAQFUDrUeuqRCWDItUfEB6QME8RTLbQhj-6lfiXeUeBW_sIKOr8TxmRFgluGnhRr2b-Ay5cenVwcir0YpxIxr_MA="}','{}',1,1795882565895244,1795882565895244,'/nowhere/checkpoints/job_jDMzFY9UBa',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(3,'job_LN9KnxUXPY','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5FyVynfV8ztiW8GR5g7hqL2laQykV0mbxYBoLBfHCascY_JVXBE8VhRpT9lDLnHrvcKGHY3oM9lNOWebvo7Nrge2UlKdzgxg-TRdwwnJ8q3Tk="}','{}',1,1795882565917992,1795882565917992,'/nowhere/checkpoints/job_LN9KnxUXPY',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(4,'job_6tz9xS2pou','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5FpOOmpOClPgCENCogPaKD6wWWjUL9HNf0YsgJd3cmc7SGkSLBi3gygK_CoEfWBaNFrud8R5jdDts5N-NVCkb7aJhaMZqGQqKFhQS3-NVhmxM="}','{}',2,1795882565930257,1795882565944375,'/nowhere/checkpoints/job_6tz9xS2pou',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(5,'job_wx1ohh0SqS','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5FyimdQiwnQKdGm46p81LD1sYC3oqaJ1NRw1crROaKa4jrE6Zs6UHy3SPHVeLdmziKk9pOWkNnOXJd9-SJCapQnDcjhWU8e8qk4u6aez3gUJE="}','{}',2,1795882565954012,1795882565956252,'/nowhere/checkpoints/job_wx1ohh0SqS',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(6,'job_bpLutvs0vx','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5FOnmS-GQK5IzMiZJL5R7ZxQVGtCtN-Umwnc94nf23oMCV5uSzi1ZlvYHwFDF85FK1tQKTzH3ul6ZEnFuFWUf0DW1dpcdOQc2Uymzu8f1FSI8="}','{}',1,1795882565968091,1795882565968091,'/nowhere/checkpoints/job_bpLutvs0vx',NULL,0,'local',NULL);
INSERT INTO "jobs" VALUES(7,'job_qYnuRXEOvB','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCv5FskqWXxOGJ9zKJqJTjV--EPcIMKOU8ocEX_53V7WIUPrUP5Q0JtG-YAiTenNbAhcLK55bf8rpbSScutYJxyAJDgsKQ464egCpsavxsShqyFQ="}','{}',1,1795882565979691,1795882565979691,'/nowhere/checkpoints/job_qYnuRXEOvB',NULL,0,'local',NULL);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrCv5FrUYLlqZ04fm7G3jFJTmDTE8GdmFadJQSZ6xqoJxCrFmb9JssXc2rmpoiPVwmpZXXmQ3cJe65FeEKYqufj-Z6EA==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, seen_at BIGINT, deaths INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1,1795882565862697,0);
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5F3rtz-9BgazshBFG5No8e7ndS-eSXdbMaeZZmyEupXnKZIpJVFWvmeslh8NIjJIUYW8PNJiMKA9Nm15bJBxm12H68LRp1HdbwOe066ESc1qf0lgJQVhl_nTbcJt2JKBTr"}','{"team": "a"}',NULL,0,1795882565865103);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5F8W48-vSkaFQl2CfBoqRdbHYRmXsxauoTWCzPVhssvxF2vG8GYH6qrK9aMBAhDk8bSKvjWcKb9Jo1Y6EOS45pNePItC1AHZuyWDRxk0VVy9RkPmmbZoP_ynczXpmJO8lO"}','{"team": "a"}',NULL,0,1795882565895244);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5F0IYG3kJjcTxXFoF-IoU6MGb2y7iqUpEOIDoYU0X2bGt-Pg3bMfR0SMZ0un6Of0EoJ4V7DfOp7pDZ_qeBpbuCunKBZw-KKnjZ4Lh9zVw6KcRh1Q_LwhxSXsMKJwbUGAJY"}','{"team": "a"}',NULL,0,1795882565917992);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5FSsY1QCkdVWrNEP5bptE9ViEQwXI4N9ik31wzeWfmXplUV4nFARh8PuJvpX017VcsKZsCHV_fkmM1Ty_Y-MegY2kh7qp4s6oZPgDVQ20goIydLOYVgmdtLx6deOAib1Cy"}','{"team": "a"}',NULL,0,1795882565930257);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5FwBFYkMhWNPou3y8NgQUbgOeENsUH5dxe_gD-a_mMaROSEuxSFraDD7w9gJQFg8uuusQ6NPhlVX2G_TqG3ESgZTqjP829RIselqTTNQcf02jO2bzJcVRHhDG7SzZiS_x3"}','{"team": "a"}',NULL,0,1795882565954012);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5Fi9XI9YcOkMgwPOfsJ7M2D80nDLybpVQJvlbnQWkgC3BaGgO7EHqgd28GYUG2unDGyFN-ZvKWMn54bfkLrujvZKVlMi04xg3IiPopFywDaEBoeDzxgSCqsQpt8O7jWO0A"}','{"team": "a"}',NULL,0,1795882565968091);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null, "part_wait": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCv5Fir30mKk2fXnI0RdLXxVXe6QkTK4okuLQ6uWerL5DLwPM_AlzwwAWlL9-HmHjWRWBUtEtwncikp_bVmNC8w3aKg0iuqEAraBN63fIOEWFCq--8WBL-aIKygjVTaG_La9h"}','{"team": "a"}',NULL,0,1795882565979691);
CREATE TABLE udf_versions (
	udf_id VARCHAR(200) NOT NULL, 
	number INTEGER NOT NULL, 
	language VARCHAR(8) NOT NULL, 
	definition TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_udf_versions PRIMARY KEY (udf_id, number), 
	CONSTRAINT fk_udf_versions_udf_id FOREIGN KEY(udf_id) REFERENCES udfs (id) ON DELETE CASCADE
);
INSERT INTO "udf_versions" VALUES('udf_mpGXTERAKt',1,'python','def plane(): ...',1795882565841040);
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
INSERT INTO "udfs" VALUES(1,'udf_mpGXTERAKt','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795882565841040,1795882565841040);
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
