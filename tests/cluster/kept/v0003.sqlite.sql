BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0003');
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
INSERT INTO "checkpoints" VALUES('job_GVH2PZDMHg',7,1,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_muv6POxb2s',7,2,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_u5FfryfDEy',7,3,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_fKwi8JnS15',7,4,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_M8hOY4KcWY',7,5,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_VgkAJKL9kV',7,6,'ready','scheduled',1000000,1500000,'[]','{}');
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
INSERT INTO "connection_profiles" VALUES(1,'cp_j6kOrggi0x','p','sqlite','','{"uri": "gAAAAABrBAxa_eZltEmrwzeYEB2tQQaKw7y8CzYbxrI1y6lguxNKCf9jaoPz-sGHNyRPzUffC-VO9p07S1x_5AEMJHMWXFep-Q=="}',1795427418903203,1795427418903203);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_F6Fd8jtaj0','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_F6Fd8jtaj0','t','t','source','sqlite','cp_j6kOrggi0x','{}','{}',1795427418907979);
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
INSERT INTO "job_log" VALUES(1,'jlm_xYgdAgAraZ','job_GVH2PZDMHg',1795427418933923,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_O9wIlHjWb2','job_muv6POxb2s',1795427419302439,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_odlUWgz2ei','job_u5FfryfDEy',1795427419314164,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_t3tHaR3t0D','job_fKwi8JnS15',1795427419326673,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_z8tnX8twyq','job_M8hOY4KcWY',1795427419331755,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_oSq5gv4wMh','job_VgkAJKL9kV',1795427419341808,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_numbers (
	job_id VARCHAR(200) NOT NULL, 
	at BIGINT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at), 
	CONSTRAINT fk_job_numbers_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_numbers" VALUES('job_GVH2PZDMHg',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_muv6POxb2s',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_u5FfryfDEy',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_fKwi8JnS15',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_M8hOY4KcWY',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_VgkAJKL9kV',1000000,'{"rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
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
INSERT INTO "job_output" VALUES(1,'job_GVH2PZDMHg',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(2,'job_muv6POxb2s',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(3,'job_u5FfryfDEy',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(4,'job_fKwi8JnS15',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(5,'job_M8hOY4KcWY',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(6,'job_VgkAJKL9kV',0,'preview',0,0,'[1]','[{"x": 1}]');
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
INSERT INTO "job_statuses" VALUES('job_GEouxkmY7z','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL);
INSERT INTO "job_statuses" VALUES('job_GVH2PZDMHg','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbd1YfBfTnvcbxoOkSwiollwh53zP7_bXgtHCxwbdpj56gopLntwuweQcJKFRJ58V9Jrw0BLSQqmxyZEXmow4goQFF_yFJVT2iQVcnTOooXEzXHAvB5kySmWx0krFmUT_C", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_muv6POxb2s','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbDpTmQN-_2SblSSGC8pZmpdwujUNZ-gvr33_Yk4xS3a-cIWlvoFzK6qNfW2kzhjSQoJWiSjYlZA4BassHwWwTLvUEhVArwPzoPhgPKPIptecd_lKF3j2h-GJ0Ewauq5km", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_u5FfryfDEy','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbSDDk0XZKEdHs09l8EdhCInh7LW6LpPLGezAXtXZDXNIX-XUBiUyw824jTFts7Pzp-n8u0BaFAf1d9brxYBV98Ym3mLT7FrKeYTceeIWDGbv5QhjNZ02L7jBBYCk0cS8f", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_fKwi8JnS15','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbswR5W9Xh_6B4MIdEGgKuIOHBKDfxWPJFUwhvV4XDtKOO5GxI6QCYSnEEgaHyoeoIIyf5HHjkjUf52UcCsme57OICYtdweT9ZcF_WREmnLukv1k3H1RSML1pF_bsnahkN", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_M8hOY4KcWY','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbFGIGw2DCFmCiY44OHInBhRpmbiPDPAFYFOHarOl8iEmrpd4Z8de3T-E__5xe7Qs66dpGoToDZ1FFG5d2XNC3779DVOahIo0ZdGt191W-0eUWvKuvPjSa9BXMH33-wazP", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_VgkAJKL9kV','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxbquOwkaBGoyZaC3MYxiDpnzMCXY2XmEk9X3EKdhYD8N1KpllQift-uuwiTmw6MfyQIKa_FqlrtKnwM0dlyCKbUfXv6OFed7_QWxtDqdzZueXhlmYT7cVyJ7oEqpy0leVw", "scheduler_config": {}}',NULL);
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
INSERT INTO "jobs" VALUES(1,'job_GEouxkmY7z','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxaPN0HJ-RJkcRrHNS592Qn5UDLYtpMSC5xul5_T3h2cjeyIBFb2nIKd4sc1IjxwqReqQASoFhVMJFY070hm8KpAefvxXruSZwaHvdPxrfd4_k="}','{}',1,1,1795427418914198,1795427418914198);
INSERT INTO "jobs" VALUES(2,'job_GVH2PZDMHg','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxaJHEzy1jH4ipu3be6Z-dHJHh-y4Qn1B2JzdQyBt9AoMDqhX8xpldq0hRI66zfWZs1m-j9i7gPKdAUrIQoLSo3kO1ky3eGGuLrIR6-IaXY3eI="}','{}',1,1,1795427418931222,1795427418931222);
INSERT INTO "jobs" VALUES(3,'job_muv6POxb2s','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxbT2ns-RDd8nUzmqwczrMw2r2RYiy9EqxUFPTFMAwDuX5WjKdQDdaphhLdAtMlGeGJaicrQoqa7sbMGOTcPiabn1M4TffYrC8NBePX7V3DxlA="}','{}',1,1,1795427419300379,1795427419300379);
INSERT INTO "jobs" VALUES(4,'job_u5FfryfDEy','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxbgy631-hAnsUGUsMnUGxeds9_a-CGtNAiWuvbu2IhJJCIigZpoHoWnN12ThmE0-pzUsRIcTIdMObG9I3wwTkzUg3OsjP0jdfo2L4FqzGYXcM="}','{}',2,1,1795427419305640,1795427419313245);
INSERT INTO "jobs" VALUES(5,'job_fKwi8JnS15','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxbjEU9wXoav_bGHe37spSTbRHxrrf2CSYLSPu8cdzCS_VYfmouodhv-UbbrHjT0jyIzj2DM2EYqoUwAdqy5usYyWwkawWldFVCUSU-5Y8AOBg="}','{}',2,1,1795427419318242,1795427419326227);
INSERT INTO "jobs" VALUES(6,'job_M8hOY4KcWY','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxbnoT9hD6UarL3eHlGiPAEmUk-6nMTHfKlpVufEgJpDY03Q6WhjaRGcP24G6MTu9SsKqA9Soq0A9HEHmkjOoEzDBtIAyCH_ZmDxnp9myip2xk="}','{}',1,1,1795427419329770,1795427419329770);
INSERT INTO "jobs" VALUES(7,'job_VgkAJKL9kV','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxbT_Ut30-ZhYP5aQzMuVxZb2jiJ5o-01KgQBU2yxUn2peCdL8wa1y1qyRNrITnMjyjaxggj-W9rBuh1Q2k5ioY9wAMJhooDdcKWQFJhkqR4dY="}','{}',1,1,1795427419339267,1795427419339267);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrBAxaEab4YasXo5p4enUDrC_tDSVo9qsXXRFZi7seJaiX2EGFBf2Tz601oJ1ufRDV2xf54y03IHFzQUCAE0JOH9aqHA==');
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxaKe-UCsQDznniyxLVzdZXuoO-bCjH4M8olp6Mrv_BwfBhcckhMfMj81f6vtSNXwuhMm5h6fLXD7T3rLeC6AK-8g5eGcwlbY5x0amyV7m6c6zl8GbuI6i5J_jzFGb548Hz"}','{"team": "a"}',NULL,0,1795427418914198);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxaCDlqvLPMlthwRVXmwHjguabPxBDyQySeXWl2PfXcm-8Ut7ccVCBo7W_bvZZeTzX0IuTPNkthqyl4FJR1Evznbnl4ynR5_J21x2ZWJcIG2AHiYTng0Rw-GYVON0OdA9D9"}','{"team": "a"}',NULL,0,1795427418931222);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbmL0n-RtiETObUFbIloXN1N8Zs6yXlhJCdSafl4xbecoDkkbiXEiT4E6hbpt8WE7hooK-4S0HujOTNk8glIcXCOLtZa7xxwUjCHlaW4YnGhZ8eAQkr0hmnP1o57cl8vg6"}','{"team": "a"}',NULL,0,1795427419300379);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbTQnhhEatjIRldpfFRQz_HeUsu9VA3yrxvPwmg_Jns5JIcqtGvOdijWDNxNoJWB1jmulbzw2ZdqHP5IjJJ56KrqwZh1scFWIgUO4PqCCGcsDhS7Dykd-BUbjrJj5hWGDB"}','{"team": "a"}',NULL,0,1795427419305640);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbkgPtLHsIwjAOm1kdaYscdmhJfNuer0k2scVzuukjTeOUaMk8BI7gd3oZ4z0CB8HjJvF4VgPUnbm_sljPe5Qf_mFTOyE-AcKV3j7VbpwuOKgj171Iy4S--WvWUV_Y95IB"}','{"team": "a"}',NULL,0,1795427419318242);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbjLmPfMTgo-95V1DNUFmMtx-gswDnzpuH60h3rN0DF3-Rc4sfiYU2SjvxAz55eEALmHWt726VK6W1QUAbNmYcE-4KBQ6pu_vubS3YMeCgmFsNZ_HHoPjz1lF4F0x5yfIl"}','{"team": "a"}',NULL,0,1795427419329770);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxbXKbFLW7dCK_brPUbNF2Ml00iXsZWYyjMPg-DeS3nHZUfVFuijiOCXvn9jU33C73G1Q9JRR-z05ULopmd3yl4jSynAa1txbMnCOQ1UvWujMOJG9dpxQDpAFMAvW28moQN"}','{"team": "a"}',NULL,0,1795427419339267);
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
INSERT INTO "udfs" VALUES(1,'udf_uv4XvMlEwh','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795427418910289,1795427418910289);
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
