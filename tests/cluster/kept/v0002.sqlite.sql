BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0002');
CREATE TABLE artifacts (
	sha256 VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	language VARCHAR(8) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_artifacts PRIMARY KEY (sha256)
);
INSERT INTO "artifacts" VALUES('abababababababababababababababababababababababababababababababab','libplane.so','python',1,1);
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
INSERT INTO "checkpoints" VALUES('job_8zYzq2QWg6',7,1,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_9BElLEmVLd',7,2,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_86Yoc2a2yz',7,3,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_Mj2CNcSfRD',7,4,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_KcaTvpN6S2',7,5,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_VTSWxBOOuO',7,6,'ready','scheduled',1000000,1500000,'[]','{}');
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
INSERT INTO "connection_profiles" VALUES(1,'cp_Ol0bsC0aRN','p','sqlite','','{"uri": "gAAAAABrBAxVEitDbkJaEOF8r4rduTvmWWucwgw7vzX9Na0_I0otg1rrat2CnlqUDkmlN7kB_-4cK7BV4Ikw9y8vKsw4ce-0tg=="}',1795427413544292,1795427413544292);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_PnnlbW4Y84','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_PnnlbW4Y84','t','t','source','sqlite','cp_Ol0bsC0aRN','{}','{}',1795427413550476);
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
INSERT INTO "job_log" VALUES(1,'jlm_KyAM4PUs2L','job_8zYzq2QWg6',1795427413589320,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_ljriwGhaF5','job_9BElLEmVLd',1795427413997773,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_13XYXu2xIV','job_86Yoc2a2yz',1795427414044383,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_FQUpIQQAD4','job_Mj2CNcSfRD',1795427414067782,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_ep9NeD2oPg','job_KcaTvpN6S2',1795427414078497,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_3pnLLSp9DN','job_VTSWxBOOuO',1795427414090094,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_numbers (
	job_id VARCHAR(200) NOT NULL, 
	at BIGINT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at), 
	CONSTRAINT fk_job_numbers_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_numbers" VALUES('job_8zYzq2QWg6',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO "job_numbers" VALUES('job_9BElLEmVLd',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO "job_numbers" VALUES('job_86Yoc2a2yz',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO "job_numbers" VALUES('job_Mj2CNcSfRD',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO "job_numbers" VALUES('job_KcaTvpN6S2',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO "job_numbers" VALUES('job_VTSWxBOOuO',1000000,'{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
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
INSERT INTO "job_output" VALUES(1,'job_8zYzq2QWg6',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(2,'job_9BElLEmVLd',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(3,'job_86Yoc2a2yz',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(4,'job_Mj2CNcSfRD',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(5,'job_KcaTvpN6S2',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(6,'job_VTSWxBOOuO',0,'preview',0,0,'[1]','[{"x": 1}]');
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
INSERT INTO "job_statuses" VALUES('job_OEENumTcTj','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL);
INSERT INTO "job_statuses" VALUES('job_8zYzq2QWg6','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxVnyl_qzjdp4eOY8smoDNau_NzlpjKQeQu3cE26sZkCzMaBBtBosVockIGfGTlxsi1QLqJDBjvXAAXadIWSot3jF1scDcTdstHrFSZfetg0WncGh_KiWpr2uobDOYmb4zW", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_9BElLEmVLd','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWiwDb948RjN59bsYjvxamArKxjCK1zFon4bF7JXIdp5wtW0y6nivgEP5-azFkT-PEgUBmlBZ4KFYcciYBzZagT0gmuxJ1wijVYeba_A0_Ks1gU7ji55Izc4sM7-jmmnwK", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_86Yoc2a2yz','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWAFvRN4KFzN20NgNF9CFMuTjLxhNq95sh-o_SlheNKBve2FTJv6r_Lc8U7B-FWgyi5EU0rxyUyTOyseBH3z_ATY5ZONJpx06MKZwEEMrbjfB5yIcXWkxBh9zk155UyWYo", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_Mj2CNcSfRD','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWpyAKoyMn8C0hS_bxhA1EwZUjgdCx5Uf3eWBxxWxkrQC0pe9d-zYInau8_XmCth4AOxEcneI5ueNst1q7n2XRtAiO1QwPR-c0GYHpmzKMzln5_gbKbI72_jNGTKzihja-", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_KcaTvpN6S2','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWMn5su0BmM1cc5sZQCx21PiNXUUfXXMIwd02nPVTsQ8f3GXFHV6pB1MRMMfKwXiy4bwIypd1MhtbQN8wpKYe85pajTm1v1boYQdgLrJBgi43ZattTJcqrDRnda45TIt0m", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_VTSWxBOOuO','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWq7nb3OK7KsorWrXSlwlpJZJbtsdK4XvIzhppicGwQYcBHG8_AVf1XsqgHbYWMZlR4NsvC42uc4UM20iUhtmQ3jO9CHwuOHW6SKh9uQnWVpDxfChLK5ZEQAPa6RTPxq1r", "scheduler_config": {}}',NULL);
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
INSERT INTO "jobs" VALUES(1,'job_OEENumTcTj','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxVFzNrtNd7x7KUQ-x3yizloFEFOlYe-9bqsuyRIUx0SZ1DP6w-sOLFrtCs0rq4y5FBSioQirgVLB7gYips-4X6E-qKyrti9KpztCBXR2gBQs8="}','{}',1,1,1795427413562324,1795427413562324);
INSERT INTO "jobs" VALUES(2,'job_8zYzq2QWg6','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxVt1EiaofTdMNETwQRfaxinGtIymnwWKIIgD-8kmRVBrtDuO_MT0jG6fdOEDb4WNPi6FI9OfHNtMNmF2X72YnhnFt1Y6R6zpGxgaa4aHZ94-M="}','{}',1,1,1795427413586424,1795427413586424);
INSERT INTO "jobs" VALUES(3,'job_9BElLEmVLd','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxVF9Zxona9EVpVKmqmOvlYXQRgPyE5p-ryJa4BEuaiZm7WAutyMeVeoH7Zc-35IHCCC3kO8LD3SiWlEKVTVZeBveUDAy0TJRvFic-aDAMWDbc="}','{}',1,1,1795427413978922,1795427413978922);
INSERT INTO "jobs" VALUES(4,'job_86Yoc2a2yz','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxWth09QBvnM1NRAYcrE1JwHPF8nt2zZxIndhx18F2cHFdLJbZogAXXnG2qfODqFyfkXWyTCsGHM_9SIt7TexqGXpKurJ_0v_jE2Rp8YY4UHVo="}','{}',2,1,1795427414016695,1795427414040967);
INSERT INTO "jobs" VALUES(5,'job_Mj2CNcSfRD','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxWUYMJ3IR1mjkVjY3ex-njnVn9ErviijvKaYMd7FxbaKx-lpJPtvOuiOsGfM9iKI6igtiggcrCKMU9ca1LZamDacLTrOrVus4or2vHCB8QmEM="}','{}',2,1,1795427414064719,1795427414067407);
INSERT INTO "jobs" VALUES(6,'job_KcaTvpN6S2','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxW8zm8N3YWDHC4qojRQA8qEkSYE2Q3Jd3YMe5tFkXm4tuFLt80KodT32Upb50vXT3oU9oF_2h61vHQfDy16Tvp4Jsq0gVu_a5rMeFU-eWu4UU="}','{}',1,1,1795427414074973,1795427414074973);
INSERT INTO "jobs" VALUES(7,'job_VTSWxBOOuO','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBAxWCO-WRIdbkms6n7QZ8KJAKbBrIrIU-8wS-DE-EeBqeMfjB-2QWorXIrYLisCNzx4FGmik76rwEl_uYN1mGNYw_1bjbf1NEIY4zkfAzwDUfKU="}','{}',1,1,1795427414081640,1795427414081640);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrBAxVuxKLmrOQMfCiUell4OjNyI_MmP5111VVdKxukfr5A8GwxIyXiFf8sKLxJ0nK_Uv18zY2Xw2KKT4FB85xZV8epA==');
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxV-UrFYS8-4G-NZ00PnNZZgysqgMJGhTffcAK6A6CnHOPmauibYtjoVkTYmhkFHZgv8_xUT_t67oKcIqICfWzrZQQ7BNEapbRrE0VpszeS5xGtVyoPv46zlAy3cg3iKDS9"}','{"team": "a"}',NULL,0,1795427413562324);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxVxXdm4el9SNFHHrti6nx5d17d6tQNf4PLSzG_-bxufAgPObhFR46tGq0OqPmjEXihiIXNx4926Er6CdxOCWYGuWP_jzTKpFBJ3VPGeDug_bbOrqpO6zZIss7SL-Epo_r1"}','{"team": "a"}',NULL,0,1795427413586424);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxVhDcZvIzQMa4QoXL_dIYwAp-zwi0y2T-3_sORcVrJ_FshyZ75Hf-z6woC46cOQ4xsic98vkwABvzZRW5UEtBo_DZ_0S0RMzT7HMhz8uXaSyq8QwF1rli083dBCiQpXPTB"}','{"team": "a"}',NULL,0,1795427413978922);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWgWpfpJ3Qgs4L7S68D5HFviHipXXquW35TOmguxmKKDuo-HT3E5RP30smVdTecA4KlDa3j8OYGmE-i75D7SNzw8hCU7Oy_x4FatndSEumj3A2fq9qp26DGX9dxacnfirp"}','{"team": "a"}',NULL,0,1795427414016695);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxW7e71wewDWD6Li-XPdY4iCK-qRhO6UbWvBI9a7uXeBI4dt2jsIMs41qi2SpMjCCE7m4z54kLqzyvKcxwoxE4LMiyVRt9P-UFD_zw_HDbDmXXrqzeFxYu5ANgFXmZcyEk4"}','{"team": "a"}',NULL,0,1795427414064719);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWnnXVFQw7kdy8iJr_sJbgygNgR91Bdr21S2yjzEWtxYlPMMShjfFY7W3Yabu9eg3k1SamspQUjXsBRlMOGuOjtlsdDifmuZjXa1vnHOCkPMa-adytZAUkJdbVYtgZ0QKe"}','{"team": "a"}',NULL,0,1795427414074973);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWZjC6cIeLjE7XPUFdujYuDauP5LX3wnzuOR0Tv5fa7zUlDzEh5A-_vuVFcq9KakY7Mfc0Ets9cO5uaehIXCnja1PogXb1x0R30h0QyQu4JExu5iDPe-02s-SvqZvqpmyO"}','{"team": "a"}',NULL,0,1795427414081640);
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
INSERT INTO "udfs" VALUES(1,'udf_SZDFJEyEda','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795427413552985,1795427413552985);
CREATE INDEX ix_pipelines_is_preview ON pipelines (is_preview);
CREATE INDEX ix_connection_tables_profile_id ON connection_tables (profile_id);
CREATE INDEX ix_jobs_pending ON jobs (pending);
CREATE INDEX ix_udfs_artifact ON udfs (artifact);
CREATE INDEX ix_connection_table_uses_pipeline_id ON connection_table_uses (pipeline_id);
CREATE INDEX ix_job_log_job_id ON job_log (job_id);
CREATE INDEX ix_job_output_job_id ON job_output (job_id);
CREATE INDEX ix_job_statuses_state ON job_statuses (state);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('connection_profiles',1);
INSERT INTO "sqlite_sequence" VALUES('connection_tables',1);
INSERT INTO "sqlite_sequence" VALUES('udfs',1);
INSERT INTO "sqlite_sequence" VALUES('pipelines',7);
INSERT INTO "sqlite_sequence" VALUES('jobs',7);
INSERT INTO "sqlite_sequence" VALUES('job_log',6);
INSERT INTO "sqlite_sequence" VALUES('job_output',6);
COMMIT;
