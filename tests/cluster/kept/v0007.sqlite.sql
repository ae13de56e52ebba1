BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0007');
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
INSERT INTO "checkpoints" VALUES('job_5wt4pAi4BK',7,1,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_4tg7zA2Tyz',7,2,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_NPIfSgQH82',7,3,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_2xJ5yOPy7j',7,4,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_RxVjvLh8xb',7,5,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_d00kSi4fxd',7,6,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
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
INSERT INTO "connection_profiles" VALUES(1,'cp_1A7oLE2vxy','p','sqlite','','{"uri": "gAAAAABrCjtkfqwzTUE-LfpHhyPnP10nF4dnarjJBkecaiWwpHlWT5Rw1d3MaaECc0xQYBNy1UHdjpfhhi1nDpE86jSsQGJOXw=="}',1795832676445830,1795832676445830);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_n5HOdc70yE','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_n5HOdc70yE','t','t','source','sqlite','cp_1A7oLE2vxy','{}','{}',1795832676469473);
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
INSERT INTO "job_log" VALUES(1,'jlm_5UWETFgGWJ','job_5wt4pAi4BK',1795832676570875,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_4aYbKpB3KK','job_4tg7zA2Tyz',1795832676597607,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_1R76vCDTeW','job_NPIfSgQH82',1795832676629581,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_3SU0K6TaZF','job_2xJ5yOPy7j',1795832676654571,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_RtRq4JAqYn','job_RxVjvLh8xb',1795832676670752,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_52nntxdihZ','job_d00kSi4fxd',1795832676692174,6,'info','Running','',NULL,NULL,NULL);
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
INSERT INTO "job_statuses" VALUES('job_bp6OkRsywc','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_5wt4pAi4BK','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtki9-P2qALLejZDlYMk2Ct73-FqhlSvvGYjkKMgkmlVW7Epe2400DVlSDuMK_jKf_K8PzOwaKzbjVkl0013nkgwvWQh9XUG-pUGZcda-qK6L5M4a5F5oV9J7RUb93YejR2"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_4tg7zA2Tyz','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtkjImRwJk9CJ-FlcBtsxRvKA4PTOxY2FlOQYKtfFM6lDXf7lkFM07Jk6zM5sVX1B0qXBLIW-MtZYFYKPsN17kwNF5FcqF0HHB9PYWB6qUV8XH4cn6DoHIh14mHJQdFaXTQ"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_NPIfSgQH82','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtkIxf-yO5sHGUh_o1w2_g3OFKu3-nbsb5wSy1P860RxHMPc3tjt3Q-iflQEXVzVWVYVAE3bFVa2Ko-NZ1ppaHakP5lo-2IIWjOp-Yv8DTHZJqDh7d27g5eyp7mXhpEpQcz"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_2xJ5yOPy7j','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtkDGFrDWNjPB40J-h9zePmFD5Y5e3eVj7c7oCMjTAtxivbYQ57b4wGg8q7ObQletHAPisgyIZLAG5Hyofbqsn1_RE1ijMeGubERiMEupLJdxpjtYv0Nf7N3nWngpryURBt"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_RxVjvLh8xb','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtk1Pka4aWbo0IpCpVJrCZfo6z1IOBo-WhZoAavFFwq2e5q3rrWvoPR_XubCbwa7y0LJLe-idSQtPWs3f-CwCt0KSSe3qOiHRcAmH8mM7EekSXzvbmS8OgGSHqAbNs2b3gu"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_d00kSi4fxd','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtkAsAd1dxt7r_UvlCwFxpwd3NwZbD2h3opoTooawlKOajoN7Tf74UuFZsVaS8BmuPvCpGUg1X75b13re_8SP26cr_16HrYVdPuQeD91A0ErdvfLRMjOEFYlw2cykCZkiof"}',NULL,0,0,7);
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
INSERT INTO "jobs" VALUES(1,'job_bp6OkRsywc','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkiIw1A-d4FGZaCRmP5Ut5AURW5jMChKsKUQPLSbpoxR-zbMgQ1JUpGOP83JDtAJ0U6CJ3VgLN8vm2J5ws8zAt0x6rPsDe0z3mO-swdgho5Us="}','{}',1,1795832676521079,1795832676521079,'/nowhere/checkpoints/job_bp6OkRsywc',NULL,0);
INSERT INTO "jobs" VALUES(2,'job_5wt4pAi4BK','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkXFSbf6bil6QfcuQ4Pf5KkpljcB58gWARw7xhqPAvwn2XUJ-Rh6ZcQ7Vhmy_wImPK0DCHpv0syCkAuAD-WDF0j0xcmqCQ-iWhaIcdR30fYI0="}','{}',1,1795832676561699,1795832676561699,'/nowhere/checkpoints/job_5wt4pAi4BK',NULL,0);
INSERT INTO "jobs" VALUES(3,'job_4tg7zA2Tyz','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkcQddpwCUgTXi648vGruA8ElnZ-OtSwryQQqKf_e6zxykLovjIwTCas-7lSobPD5yrd1MtSjHyImVyix10qEviLsHNkILlzXj60qxdyjlaEM="}','{}',1,1795832676589629,1795832676589629,'/nowhere/checkpoints/job_4tg7zA2Tyz',NULL,0);
INSERT INTO "jobs" VALUES(4,'job_NPIfSgQH82','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkuDL7eQxBGJBqr7z2mRaHeI7A8j6Ao_vq8v-RfzEhrlD1Dc7neiU0vuGAU4sbox6bdqionYToQkdy3F7W64hkwcIH-nzkpgYIqEmwrmOB6L0="}','{}',2,1795832676605164,1795832676627742,'/nowhere/checkpoints/job_NPIfSgQH82',NULL,0);
INSERT INTO "jobs" VALUES(5,'job_2xJ5yOPy7j','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkmcNcCMzErSsCZEq4X21b2Pip7jFruOIvsDgkpNk9QjuuN09dQ9i9LlGrZRPHzSQKPow9TuU0zfHdT5BeKyKr2vVu3g0fBALuTNtm4HLihhk="}','{}',2,1795832676639151,1795832676653972,'/nowhere/checkpoints/job_2xJ5yOPy7j',NULL,0);
INSERT INTO "jobs" VALUES(6,'job_RxVjvLh8xb','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtksq8ZCy0oouvPmvQsBZ-ASlidBiuSdVwASKrr3jRuXVT-2rlQcIReeRW1sU42PJ3ibyX0yvDTda7DrJCDBZ-6Ka-5qya5liYLV1W5mvI67eg="}','{}',1,1795832676662129,1795832676662129,'/nowhere/checkpoints/job_RxVjvLh8xb',NULL,0);
INSERT INTO "jobs" VALUES(7,'job_d00kSi4fxd','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrCjtkgDWsANGrcxjgeSn-5txAYHHSkR1dFlV-Bd3UJt2I8aQLvknlraDynqaXhTGvxr88-XHreKfgqX8Xi9dTv0-bSko5ntB3W3t9mr0Luh2Nvfg="}','{}',1,1795832676684445,1795832676684445,'/nowhere/checkpoints/job_d00kSi4fxd',NULL,0);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrCjtkzjEpeQ3AM-vlLza2twsFuen9ryvmkW-vK4acX1sLMpFKjfpVLUldEFGuTL2U29fE-jWonRiluoJY3fIDG5ct0g==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, seen_at BIGINT, deaths INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1,1795832676519687,0);
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtk7kAl3vg4g9ScW1_Y25v0Z97itajorfx7tHFGtFzIZVUu6IfFc7lwhkaY-WV0x-hLRt8PLt2V4p3MAobp9bNVXy2EKEIdm-fszVD2wFYof-q1CXceligu3EGd7Gtr-nLu"}','{"team": "a"}',NULL,0,1795832676521079);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtk9GXNAeveqdmIV5H0fiXdqZZo57655hVPxKjrKu6ICC8u9GPv9azbZeLUpo1JnnQYgDcVG5gwB4b75v_HDaPx4xzPO-ntOBod0QtSYwyrPrn4_siganr0HeJbc-xJNJ2L"}','{"team": "a"}',NULL,0,1795832676561699);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtk2_OOEbZBHxuccKTqzMfPM0bQZpvs_UJmTAU_FRFNoKfaRgXOZECz2hH5RIMIc10bSvanVMsJRUBOXJ9tXW6X3Vb-O-_aWZT_y1X4v24kO_n9bglDutGU5n_oz2sSz219"}','{"team": "a"}',NULL,0,1795832676589629);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtkh-k4bT1ao6yR0uwQv0fTWEaRxT3geuNegWXorJ8NcXDlufhjh3kRf9rNCzc84lU3OvtrT4czudwkJiPi79zzinoqY9lk7yJA_zESZVPS9ITmjd69NmrqFdJvuUKBXI49"}','{"team": "a"}',NULL,0,1795832676605164);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtkSoRWwFNggD2PPrOTWG16QaEWzyXUVN2QvMAnF0YpGqRrHcbLkKSPHpfa5vzr_lenEP-2Deg8XfkT7OBAt0Cd-hZLCVMIt99lZ32uYuIWeO_Njk7UJDGjeHM9s-9BgN5S"}','{"team": "a"}',NULL,0,1795832676639151);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtkIztuxYVaRCyq7D7RuhxzSsciV12oywuPOktBIKf4of14fCimStdscGX4ngdR7q40yqlR6riqJyo4LYPi_7sZuwM-yJvn3m2vvkDEdyXYUF51RAzGzuoF9xuFHE4DFhdC"}','{"team": "a"}',NULL,0,1795832676662129);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtkqqlaREjdWyv2BTiqu14PLC0J1yoJz9_ynNkLwhUqVzaAyu1z3qH-hCm1y8k3hTfptJKA5PLDdtGSyDMFbgkVxF-qk1PD_iJkvGP31eZ6ed02JhnbmtUiiWeqSemfB2Ya"}','{"team": "a"}',NULL,0,1795832676684445);
CREATE TABLE udf_versions (
	udf_id VARCHAR(200) NOT NULL, 
	number INTEGER NOT NULL, 
	language VARCHAR(8) NOT NULL, 
	definition TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_udf_versions PRIMARY KEY (udf_id, number), 
	CONSTRAINT fk_udf_versions_udf_id FOREIGN KEY(udf_id) REFERENCES udfs (id) ON DELETE CASCADE
);
INSERT INTO "udf_versions" VALUES('udf_jqGqeIqN1n',1,'python','def plane(): ...',1795832676497605);
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
INSERT INTO "udfs" VALUES(1,'udf_jqGqeIqN1n','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795832676497605,1795832676497605);
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
