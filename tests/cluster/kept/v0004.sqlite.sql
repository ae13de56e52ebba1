BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0004');
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
INSERT INTO "checkpoints" VALUES('job_1BrTkhjR5C',7,1,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_SG1UHaIi6j',7,2,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_5CiVl6c71P',7,3,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_hg7cqpSp4J',7,4,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_cL4J3BvmBD',7,5,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_aJx40Tim7m',7,6,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
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
INSERT INTO "connection_profiles" VALUES(1,'cp_hQwkMCHcWj','p','sqlite','','{"uri": "gAAAAABrB2tLWbgHoAJYaBEjSHJbGDmpWXdBz-ldm-fpv70h8qd-MFD2uCYmUf2JQHtflRIO0dhhdH67VY46cs0xyW-7C96JfA=="}',1795648331792822,1795648331792822);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_OnnhzsFwsX','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_OnnhzsFwsX','t','t','source','sqlite','cp_hQwkMCHcWj','{}','{}',1795648332316908);
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
INSERT INTO "job_log" VALUES(1,'jlm_2cXyAOhEwf','job_1BrTkhjR5C',1795648332506048,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_mJAkkicYDp','job_SG1UHaIi6j',1795648333291568,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_cRzBx206Ih','job_5CiVl6c71P',1795648333449439,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_wbgB2P8he6','job_hg7cqpSp4J',1795648333576098,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_nCtjMl0sRh','job_cL4J3BvmBD',1795648333625143,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_lXDzrIO9x8','job_aJx40Tim7m',1795648333684503,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_numbers (
	job_id VARCHAR(200) NOT NULL, 
	at BIGINT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at), 
	CONSTRAINT fk_job_numbers_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_numbers" VALUES('job_1BrTkhjR5C',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_SG1UHaIi6j',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_5CiVl6c71P',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_hg7cqpSp4J',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_cL4J3BvmBD',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_aJx40Tim7m',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
CREATE TABLE job_output (
	serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	job_id VARCHAR(200) NOT NULL, 
	number INTEGER NOT NULL, 
	operator_id TEXT NOT NULL, 
	subtask_idx INTEGER NOT NULL, 
	start_id BIGINT NOT NULL, 
	timestamps JSON NOT NULL, 
	batch TEXT NOT NULL, 
	CONSTRAINT fk_job_output_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_output" VALUES(1,'job_1BrTkhjR5C',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(2,'job_SG1UHaIi6j',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(3,'job_5CiVl6c71P',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(4,'job_hg7cqpSp4J',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(5,'job_cL4J3BvmBD',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(6,'job_aJx40Tim7m',0,'preview',0,0,'[1]','[{"x": 1}]');
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
INSERT INTO "job_statuses" VALUES('job_rocDNwJTNB','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_1BrTkhjR5C','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tNeQGY_jh_EK5tTsp7bx4kelkrOqd48bFuRwNw9c-Jh9s7l2zXvrg5K0YxEpsKOtL-UAWYl6SyhLY-Q-fWNP3g1BMdZOd50xTaFok8wH3A9O1PRNkRxgOafy0vOWT8x6sU", "scheduler_config": {}}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_SG1UHaIi6j','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tNmq6TE6OoRyAVeDTymPEyV_QVrVTlztxYTUijcBD8MMEr_V16bK_JGNvQ4WMYLHZckXtCSIWuOhPIxv2k9ea9gNdDStca24FVTbnKb4orEkbV_LsJ_-Ia04lcK4-uwivC", "scheduler_config": {}}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_5CiVl6c71P','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tN_PU8yAAzLVexBdfww-fkd1zESMmGclrcqz4r_ZzozonR0GXy1FPzOrc_dr8pDzrX6UJcT7HQAhXeFCPCHxS9FXWYjPdDw5tmYBcCv6XDXzgnpW9bkFryi1l5NqUagZt5", "scheduler_config": {}}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_hg7cqpSp4J','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tNBOsx4OdwY_Tif7lQpeU0dPp4Z-r1DS-Ib0op19Wo23x0zWPlSmFS7fn5NCCjPU4dbJXT5GIBcpFfLXgb_ovxmbYeDVbwEP2thKsmyeI0Hgy51zit-OOmkqd8xBwZNX2C", "scheduler_config": {}}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_cL4J3BvmBD','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tNklE3Z1SaqQ2t0H44i8qnf4GIH_TyIhCOH0OguUVFZBuZK0_zFa6gW8DpQTMx61X-fQRmq-yw7Ua6cgGZ7JaHoPGQKoDYWvmKYelRJ0icAP_evlRLhTV30_fXT6PLm-yc", "scheduler_config": {}}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_aJx40Tim7m','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tNrI2eOmowC6b1oLAqmpHS3r0VYKx4bsR73u0limsK6rlvaAluNBC74V_fPyde4cgFg75_zZFyEz1e-R9y4VELBDRjIuRV0NWDOFIdHuqNcrjdo-8toIJaN3A55SXRvQPr", "scheduler_config": {}}',NULL,0,0,7);
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
	updated_at BIGINT NOT NULL, place TEXT, restore JSON, 
	CONSTRAINT ck_jobs_restart_mode CHECK (restart_mode IN ('safe', 'force')), 
	CONSTRAINT ck_jobs_stop CHECK (stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')), 
	CONSTRAINT ck_jobs_parallelism CHECK (parallelism BETWEEN 1 AND 1024), 
	CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT uq_jobs_id UNIQUE (id), 
	CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id)
);
INSERT INTO "jobs" VALUES(1,'job_rocDNwJTNB','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tMsCv1MKAZUeVBBeHQPH_6rXpQsnIqf6OqRRDs4RIEOBNFvqu74SKvB2T3DQDnnzoLdMobpEZijp3XjonfubSX7RFPDo8QG4yFFSKs-ioIzxM="}','{}',1,1,1795648332375958,1795648332375958,'/nowhere/checkpoints/job_rocDNwJTNB',NULL);
INSERT INTO "jobs" VALUES(2,'job_1BrTkhjR5C','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tMPbcHVrs5VleovakEdTKvuwe1QICbSzWaHAegfScR2OL1PnaK2ONcz3yY6hR5vHGEqZh6eTrrXLTxkK3JW52ocnNNxrX5OL5oLbY-qa4XpiQ="}','{}',1,1,1795648332448502,1795648332448502,'/nowhere/checkpoints/job_1BrTkhjR5C',NULL);
INSERT INTO "jobs" VALUES(3,'job_SG1UHaIi6j','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tNiLgzvXQv6v4kPvuxEovaLVn3MQ2hwvWKPW-dm3ySpheK81dnxd-xgVY34_7X3WuXamndmNxFahBiW3nmhMrA0CEYeer2ffXedzPzaJa8lTE="}','{}',1,1,1795648333262399,1795648333262399,'/nowhere/checkpoints/job_SG1UHaIi6j',NULL);
INSERT INTO "jobs" VALUES(4,'job_5CiVl6c71P','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tN-hCfJXnLbVGNDGEheeBXc7ZkbHdBPGCH3XR3HvrwjfDxjaVVc80UD4Ry1CoOaYMWtY_VoiTaj_YAmmuWAahNJKMFcH7BTrF93lqV0tw9FaQ="}','{}',2,1,1795648333343661,1795648333447842,'/nowhere/checkpoints/job_5CiVl6c71P',NULL);
INSERT INTO "jobs" VALUES(5,'job_hg7cqpSp4J','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tNhyTQC9JYm3uubykXKk2ANZvr3tZZ3H0RdHOnd-J7w-rhVLofXsp3OhxzClwHNy_gWjF1mRa0RWzDzA1eRAnJPAO6lqJGC_1aY48tBigoI5Y="}','{}',2,1,1795648333543236,1795648333575585,'/nowhere/checkpoints/job_hg7cqpSp4J',NULL);
INSERT INTO "jobs" VALUES(6,'job_cL4J3BvmBD','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tN_RfamcGktT447JdyQ13sHZ-BKQhdQ2RJgddbhpJ4Qr7GJNWWJDGKrRlHi3_FZC0oJOf2Jehfwmkq3tdKOTBBKWVrGGnUvGcFWJla9iyOcw4="}','{}',1,1,1795648333605377,1795648333605377,'/nowhere/checkpoints/job_cL4J3BvmBD',NULL);
INSERT INTO "jobs" VALUES(7,'job_aJx40Tim7m','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB2tNOB-yBtzTrgPxyPu1jsq97hyuAPraVZX5QT-M5bNp468u3NpSrMM5CNGeprbxMHqZKpdwOnVQlgP_CZRRWGoLaNA4mWzvEK7vLLR8457h33A="}','{}',1,1,1795648333666671,1795648333666671,'/nowhere/checkpoints/job_aJx40Tim7m',NULL);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrB2tL5BdoeWtcG4_XhcgPzk48s25oFKDhc9RHD1IELVgeVKNah2kupDxJprXGT6L23CfLYLXhFjZnaflWjrPTNbALtQ==');
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tMGtPkzUWRizhHPgcV7DsCiccy4Wwjz88WKDq7L95dAqeofY0osoVS3Jtum8ZfB2hswClTDLoMwTjZzKwETQq91hAWV7OxgBxa1fxhc9aV2HLJGE8Vf5oXtnHHrrJy93GO"}','{"team": "a"}',NULL,0,1795648332375958);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tMGfptKzHe6KM1G5w27oM-81Ia5mWvHuuV5xAc0d74m3JGjt8prhYJifG9evm5KfuNX6kwSUbjWIh6ZpT33B9A9HmNB_dmidpGaE7RO1-fjNpzya6Tc9FDO2Zvs6uHYun_"}','{"team": "a"}',NULL,0,1795648332448502);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tNGEAuh1l8bZTFUNZkolJ3Ar8of3zI-doFE8bL4vHS1T42yQb3Rp5Ocvc5pWMUKgPdOZ5UqM3d08jptpF5UMGW4ZAqAtHRKxj9uw4FtsQ2oqmRyNrZGxSrKUlyJ84Yym5C"}','{"team": "a"}',NULL,0,1795648333262399);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tNsfyO4GFBBAksgp-o7T3r_wXgw2XVT6HV-IngmxK73evBYdVJF_yZigbZJGJt_KAjLYE-ZjSLY9EbxLRm2rVo0hAa-9WYCrVSCFQ7bZkatqAShCklfaaoLHhKnwIG2Wa_"}','{"team": "a"}',NULL,0,1795648333343661);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tNsq-Ei_oQvMLwoZ0cR86H15fYgQ18Ae5CZyxav0G1qvGSPKOc_L7pAdxdPRGXxMvrzkgiK2DpDYflIIE2FjkBL2yNR1sfscEqyfvjtPbs-Xy0pDFd1NLtWszRLBOGnZa6"}','{"team": "a"}',NULL,0,1795648333543236);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tNKUAk7w0mRcJfCu10mSg5FI16yZsKQLew3m7iCsDfm1QU2Y2M_CUtoznrzZsnuTodYFhSi3ZB6-CaLFwYJqoAlquML4pyKpoguSoBgVD0ViHz7tkNCfgAKyhEspHNW1jU"}','{"team": "a"}',NULL,0,1795648333605377);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tN_LmPnpCxXEPVan0RAiMD-qiZyGN-lcZYwBSLhh-fFM8zjUVn5nfC2Le3rFHeiJpncPLhKHreAVldJU4O4FZsMOEgOCGUXD4wuD5h2bnJn6M9byDst6Pz2GPFKrNCgblj"}','{"team": "a"}',NULL,0,1795648333666671);
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
INSERT INTO "udfs" VALUES(1,'udf_ejwuiE2cdo','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795648332360008,1795648332360008);
CREATE INDEX ix_pipelines_is_preview ON pipelines (is_preview);
CREATE INDEX ix_connection_tables_profile_id ON connection_tables (profile_id);
CREATE INDEX ix_jobs_pending ON jobs (pending);
CREATE INDEX ix_udfs_artifact ON udfs (artifact);
CREATE INDEX ix_connection_table_uses_pipeline_id ON connection_table_uses (pipeline_id);
CREATE INDEX ix_job_log_job_id ON job_log (job_id);
CREATE INDEX ix_job_output_job_id ON job_output (job_id);
CREATE INDEX ix_job_statuses_state ON job_statuses (state);
CREATE INDEX ix_artifact_uses_pipeline_id ON artifact_uses (pipeline_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('connection_profiles',1);
INSERT INTO "sqlite_sequence" VALUES('connection_tables',1);
INSERT INTO "sqlite_sequence" VALUES('udfs',1);
INSERT INTO "sqlite_sequence" VALUES('pipelines',7);
INSERT INTO "sqlite_sequence" VALUES('jobs',7);
INSERT INTO "sqlite_sequence" VALUES('job_log',6);
INSERT INTO "sqlite_sequence" VALUES('job_output',6);
COMMIT;
