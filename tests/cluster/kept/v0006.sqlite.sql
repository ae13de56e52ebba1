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
	operators JSON NOT NULL, 
	CONSTRAINT pk_checkpoints PRIMARY KEY (job_id, epoch), 
	CONSTRAINT ck_checkpoints_checkpoint_type CHECK (checkpoint_type IN ('scheduled', 'stopping')), 
	CONSTRAINT ck_checkpoints_state CHECK (state IN ('inprogress', 'ready', 'failed')), 
	CONSTRAINT fk_checkpoints_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "checkpoints" VALUES('job_W4xolWyq6C',7,1,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_vX6CRCOmM4',7,2,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_ouv3cAQM5s',7,3,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_nKRzfCdlet',7,4,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_pjpanFWme9',7,5,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_nPeAwItB7S',7,6,'ready','scheduled',1000000,1500000,'[]','{}');
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
INSERT INTO "connection_profiles" VALUES(1,'cp_brXdfKzZYB','p','sqlite','','{"uri": "gAAAAABrB3F45tK-QXwAJCCLD52LCwRWlxg2cmM-I8mWxkIWftvQrPHfZZInNUJ0c8pqUg2VBSuxS1ekMu8y-GpbO022gCpElg=="}',1795649912606415,1795649912606415);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_vkNY1IJTyq','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_vkNY1IJTyq','t','t','source','sqlite','cp_brXdfKzZYB','{}','{}',1795649913364000);
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
INSERT INTO "job_log" VALUES(1,'jlm_3jR30xUTVX','job_W4xolWyq6C',1795649913584732,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_Vm5dEIQIZa','job_vX6CRCOmM4',1795649913688393,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_AM75yyrnFV','job_ouv3cAQM5s',1795649913785447,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_xXzTAUHZ1j','job_nKRzfCdlet',1795649913863431,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_JcrnYUHUyv','job_pjpanFWme9',1795649913931941,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_RsjoYjTDbA','job_nPeAwItB7S',1795649913993410,6,'info','Running','',NULL,NULL,NULL);
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
	worker JSON, 
	CONSTRAINT pk_job_statuses PRIMARY KEY (job_id), 
	CONSTRAINT ck_job_statuses_failure_domain CHECK (failure_domain IN ('user', 'external', 'internal')), 
	CONSTRAINT ck_job_statuses_state CHECK (state IN ('Created', 'Compiling', 'Scheduling', 'Running', 'Rescaling', 'Restarting', 'Recovering', 'CheckpointStopping', 'Stopping', 'Stopped', 'Finishing', 'Finished', 'Failing', 'Failed')), 
	CONSTRAINT fk_job_statuses_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_statuses" VALUES('job_5mMn2HEVCm','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL);
INSERT INTO "job_statuses" VALUES('job_W4xolWyq6C','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F5-HEQewGQyN4JilGL7ghVprUGFl4L0fR8pH3tJy5tzRYOC0vvXL-R494joJJ0Z8XaB2zM1xETtjUw8L7g-8z6o1PPidYwzI1bhPNX2_cx0Nap5feCQuj5KuCpnzAaUvcN"}',NULL);
INSERT INTO "job_statuses" VALUES('job_vX6CRCOmM4','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F5jeD30HPbn38dJxlsQQCCTooSF5NLZDModHTzH_drPgmVOFYEY9CaJWhDm1WS4h7vaWnn9NcSTXPba5hEswXPrWO6M8WyLiwoSqRErMcfnzsviIDHuWtfn-mWe7D8JClg"}',NULL);
INSERT INTO "job_statuses" VALUES('job_ouv3cAQM5s','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F5MXkbh_d3LnbJxNxQXY00nzCgPp0z6ngHfAPKu-bfXFyjehHl8X9HoOe8_4tgmse4z5jrTcqp3vp0CSyxsRIPKFC6cuBltJusz-_k0on0jbtcWUjCuMUbOyjhTiggaMjT"}',NULL);
INSERT INTO "job_statuses" VALUES('job_nKRzfCdlet','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F5jYPmoLF3xs7XKTK9U-6u5P656WnSHqInOO5zWg3ocX7nozwZuIqp82LnMwVL7SGKGa-_pR3zLxTRw5hH7AyGCSys-AnhVGgKPJgasgPLuQNWJ4YtjaTmAnb6oMeO4xkX"}',NULL);
INSERT INTO "job_statuses" VALUES('job_pjpanFWme9','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F5XPTmFuDCJ2AlkPoikH7aTS27U5pQDSA44ZAox7wS7Olr8Ouk2AzbxtgCABcjzuLmgX8As1CkeEJ0WeXtKLKpe61PkQRsiO1_OWpDe8xMD-Kl_R1yRODI6ENQiUEPRmbN"}',NULL);
INSERT INTO "job_statuses" VALUES('job_nPeAwItB7S','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F6-AzqEQVHf-7zMounDUqtbASHBLN7FfRAm0AsJITBgxP4JceaPFoQ63kNINQm5hzDOd6f38ALbcqWFHx5wx8HC9N0tzfy63rHDGaihmKEHXKb9hMpZMbRVgX42tGNfWsZ"}',NULL);
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
	pending BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT ck_jobs_restart_mode CHECK (restart_mode IN ('safe', 'force')), 
	CONSTRAINT ck_jobs_stop CHECK (stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')), 
	CONSTRAINT ck_jobs_parallelism CHECK (parallelism BETWEEN 1 AND 1024), 
	CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT uq_jobs_id UNIQUE (id), 
	CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id)
);
INSERT INTO "jobs" VALUES(1,'job_5mMn2HEVCm','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5PwnaIsvPyaNmHI56T2218V6IBScC_ivhdjjLhUy83tMXJ7tIWpX2JN45_UxkZb0Vs1n5TF9N6uLh3IQK5yRpKSe6uihFGOer9A1a4DSck6s="}','{}',1,1,1795649913441486,1795649913441486);
INSERT INTO "jobs" VALUES(2,'job_W4xolWyq6C','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5AEMcqPi4KIfQaimki9vNwIbPzVRJMNWfLtdzONS5hBh-we9507rxihw4_7LLfy-ZK2ql-Ll3_cyggYaCqJkEvzN0bVbxErwn2tU8IoGXndc="}','{}',1,1,1795649913557077,1795649913557077);
INSERT INTO "jobs" VALUES(3,'job_vX6CRCOmM4','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5aCiirwgis6IwsVc6PAHHqgi5SNy-o6PfzmC5B8rMDwjJ7FxsQTgCed5hCQrMMWdGo005RBN74ZvRhEboNZ5MHLMcdg5ct6ry_LjZiT2snoA="}','{}',1,1,1795649913656513,1795649913656513);
INSERT INTO "jobs" VALUES(4,'job_ouv3cAQM5s','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5rz2ZvlvpZovani96r10D7wpsOJXn8tnmV0Ma12BLdpwpptMlcJndNyapcFkC7fzrCMfUqhBc8Ong1_ka4GYCi4uYQkTaO9hI86frS2x_f-Q="}','{}',2,1,1795649913725952,1795649913784153);
INSERT INTO "jobs" VALUES(5,'job_nKRzfCdlet','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5Mv95eqbVJroCUstU4PpmfwoIf3oXQHcU9EQoMq4e1RLoitAOIFCsyRUBFZpkh7ZeJCwjUqbOXThmnU1JomVB6W3CRLjsgmZ_Af3yoTk1FGc="}','{}',2,1,1795649913809011,1795649913862619);
INSERT INTO "jobs" VALUES(6,'job_pjpanFWme9','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5Eoobo6EWi8qGw0JaDehsz7dHSC7zXxeM4ex3HvC-qDTreFem75mDlbUTBieb_LGW689PLDo6Q-QVPmJ-mg2k05UZ5ucI-Y3ww-0Q-zr9R3I="}','{}',1,1,1795649913895741,1795649913895741);
INSERT INTO "jobs" VALUES(7,'job_nPeAwItB7S','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3F5PKTjBUB_6MTtWWY9axr1gz39Cj7fDx3kbcDjOpvc5_ZwboWDN40DaKdSopQLPB1iueWJfpU6xS3U-SXiXr0kQhbOv0LzCa0IPklhcCYEc04="}','{}',1,1,1795649913968903,1795649913968903);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrB3F4GnVngSbmFabxrqC6zAd7ukbWchIf-nFBXK8oYTGx1GG-5ZqM4_S7fMZM_OX6_keftET1-4ASZHtVB61VGY_Kqw==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1);
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F5BlwFDZ3vLRJ-y4FP3WaGGbVEKQneQeup-x2L_isDDlXtt4mWeadD6Jiou4NF7mx5TL9HYTmIYBiw8xCWNZIildryssDlZcLpk7Li7poC0KkC2U_BDiwp0GwHqigbk79w"}','{"team": "a"}',NULL,0,1795649913441486);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F5nh3iU9SPnLuiW5vCvaaDbaRsM7cm3-dItdQLpBIHjWFEu9bQlRqRiOSVFHcYGuoCGTMbHLsF5paoT_DQu1KeJaX06D4iEswCKZVQVlsYY_cno6wcUnm_hAGncqIRmztn"}','{"team": "a"}',NULL,0,1795649913557077);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F5ROLVXkhGAGlvKOGKeX-xTcc4Fw6Ee5A4ifaXrjrS4PWvpEg4_0YJGMovbNnYk-XZbcrJoXGlxqi_PpGy-PSkMp790XW93LJP1kZskQ2CswzRFZ4OQtSMnUBGLSH36gEU"}','{"team": "a"}',NULL,0,1795649913656513);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F57-OwtqXkjIkL4lYwrpUfxt8tyFVX0ykEjx12HicIdH_6784VR3ijxLKeP_QfFfAdSWUBqvYsS3a6UHBi5mXPr2ZPWZDPEipWxoQDpwTubJxjZi6PqbgJgC5YeDPrY3d1"}','{"team": "a"}',NULL,0,1795649913725952);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F54GcWmDpMkbxAWrTe8T0xaKhs6QdBSkXm3WqNQcQcxx04MlZKSwwCEH5Aced81YFN-GPPaLoTlIs3LCzhiK2m7_Buq1CADdqXvzc5Oc88ms588NDTXcK8nj8QUmxCnZOP"}','{"team": "a"}',NULL,0,1795649913809011);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F5M4VuV9E_Oq5d4W9OLt2PjVqEi8V3h1iVpDZE2DIatcFHAz5o3Oa5ck7y7EVqDzDLc2Hi0StCWzhNNJYZpCeug91va7TnwNOj551bPptQXDUdNqevsgtdzTryQuW_a61E"}','{"team": "a"}',NULL,0,1795649913895741);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F5H1AH3pKk-MP68hUTBUmpKe_LtCc5PdalNjdF7S5k4QD6ELJkF5SolyWwqGON0hjB0ltxftr8kfVPl4sJtxBlXclOdxN8ymmAVVw8hpmAAvQfeVl0E3qAKOaLpPgueWtt"}','{"team": "a"}',NULL,0,1795649913968903);
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
INSERT INTO "udfs" VALUES(1,'udf_xfXH3j4UEy','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795649913385085,1795649913385085);
CREATE INDEX ix_pipelines_is_preview ON pipelines (is_preview);
CREATE INDEX ix_connection_tables_profile_id ON connection_tables (profile_id);
CREATE INDEX ix_jobs_pending ON jobs (pending);
CREATE INDEX ix_udfs_artifact ON udfs (artifact);
CREATE INDEX ix_connection_table_uses_pipeline_id ON connection_table_uses (pipeline_id);
CREATE INDEX ix_job_log_job_id ON job_log (job_id);
CREATE INDEX ix_job_statuses_state ON job_statuses (state);
CREATE INDEX ix_artifact_uses_pipeline_id ON artifact_uses (pipeline_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('connection_profiles',1);
INSERT INTO "sqlite_sequence" VALUES('connection_tables',1);
INSERT INTO "sqlite_sequence" VALUES('udfs',1);
INSERT INTO "sqlite_sequence" VALUES('pipelines',7);
INSERT INTO "sqlite_sequence" VALUES('jobs',7);
INSERT INTO "sqlite_sequence" VALUES('job_log',6);
COMMIT;
