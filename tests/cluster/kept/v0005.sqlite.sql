BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0005');
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
INSERT INTO "checkpoints" VALUES('job_UqqbFhtLa3',7,1,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_2FwhHsnYoS',7,2,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_mKSyNrsJRl',7,3,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_Yq7ISohQJd',7,4,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_R6Zq9YMfns',7,5,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_D9qNcZ6Ljl',7,6,'ready','scheduled',1000000,1500000,'[]','{}');
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
INSERT INTO "connection_profiles" VALUES(1,'cp_tfun0alVXc','p','sqlite','','{"uri": "gAAAAABrB3UjHO835XRkpHogxvGDQWQrCHRQJriKk7z6vGO5ZGxUnaEU97Nd2vRm-f7w6ZDT-PWx8decqX3vMF1B9haXHula8A=="}',1795650851138434,1795650851138434);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_5iAsh0dUtr','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_5iAsh0dUtr','t','t','source','sqlite','cp_tfun0alVXc','{}','{}',1795650851226227);
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
INSERT INTO "job_log" VALUES(1,'jlm_ZliDQOgiqQ','job_UqqbFhtLa3',1795650852250282,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_F6E7vjgQg4','job_2FwhHsnYoS',1795650853860685,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_IsUbN1xD20','job_mKSyNrsJRl',1795650854177214,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_044UVzZZpU','job_Yq7ISohQJd',1795650854396810,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_axtTJd2Zkp','job_R6Zq9YMfns',1795650854615116,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_SvpYWOp4yw','job_D9qNcZ6Ljl',1795650854896136,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_numbers (
	job_id VARCHAR(200) NOT NULL, 
	at BIGINT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at), 
	CONSTRAINT fk_job_numbers_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_numbers" VALUES('job_UqqbFhtLa3',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_2FwhHsnYoS',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_mKSyNrsJRl',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_Yq7ISohQJd',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_R6Zq9YMfns',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_D9qNcZ6Ljl',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
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
INSERT INTO "job_output" VALUES(1,'job_UqqbFhtLa3',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(2,'job_2FwhHsnYoS',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(3,'job_mKSyNrsJRl',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(4,'job_Yq7ISohQJd',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(5,'job_R6Zq9YMfns',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(6,'job_D9qNcZ6Ljl',0,'preview',0,0,'[1]','[{"x": 1}]');
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
INSERT INTO "job_statuses" VALUES('job_KyPHrLfSn9','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL);
INSERT INTO "job_statuses" VALUES('job_UqqbFhtLa3','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UlxA4dVgEokuJZkAqk1hZJ0bVoKzcNcumjgwJs_QjAg73pU8LY0wXGOG3cNbU48hZMfCxQ6-btD1NPfTrgVANG8QopTZaB9JE5ORjzee1gvKNVR62kTKnG-e265csEzjcd", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_2FwhHsnYoS','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3Ul1_52jw3VqAEq8Zkz6kLC4eHb-YCYa_UxDV_W38juiYbYwtjyv3VPJPjaJetQLqZ5J1Ht_3Rh_qP-3w1Tey_n5WIZxbakREFTo-U2hE17mwAWo6lvRThsrDRcD7QL5vYb", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_mKSyNrsJRl','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UmwR9eUtvbmYb6mU9bWQFMBGbrrwkXb0C1Mh1quhAb8eb7z01atgB-DRNaVNp933woGzlP5ne7CwAig5FR34phj7cdJ1D7XmZSAwXheffTT3CFD3eQIMUiOjMt3tUymmLE", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_Yq7ISohQJd','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3Uml9bsrB4Kr-WYjJCt-VSPIh3TA05mRuB2tx4lCPdJVeKNDJGFt84F_kdIaeYOho1_ZZJqKXHMNvLDJr740078InNWmMfxOzS9pQPclNZ-uazvMnxNM0RVqtU6tR-yd-2U", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_R6Zq9YMfns','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3Umm-u-9OCR-RNTkav_7njwE6dE_9N4DGJ3mGzQQwCiq1LdLcqoaTPYY1nJyyRuTCxFJog7OOSnGiCalVADDE-XnHl07mJR4OusqUxi0wK8G0Orc6lBziYovdpLLERGwChC", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_D9qNcZ6Ljl','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UnBj9W7KThQRm37IsnsMyI0c9ziyKHCo1Yl8gXi0ayNRKJKMcvaNXLIR_7VRR_CR2xNiOw9tSIYPAQFx2F_LrJrhkOyoC59xxkl_J0w6WhOcPgYZOQAHlNOWVq_JYhkdmv", "scheduler_config": {}}',NULL);
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
	updated_at BIGINT NOT NULL, fulfilled INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT ck_jobs_restart_mode CHECK (restart_mode IN ('safe', 'force')), 
	CONSTRAINT ck_jobs_stop CHECK (stop IN ('none', 'checkpoint', 'graceful', 'immediate', 'force')), 
	CONSTRAINT ck_jobs_parallelism CHECK (parallelism BETWEEN 1 AND 1024), 
	CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT uq_jobs_id UNIQUE (id), 
	CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id)
);
INSERT INTO "jobs" VALUES(1,'job_KyPHrLfSn9','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3UjT9_o2GBCACzEuuN79VSOFBQdi_ZCt_Zs_GJnRNxfNMJkCZbuMmRiM-HE_j70-FLkHvHGE_0taI1IeK5CZff9DRM-AmSOzkH0kYqAH7OPe-Y="}','{}',1,1795650851495225,1795650851495225,0);
INSERT INTO "jobs" VALUES(2,'job_UqqbFhtLa3','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3Uk5YbZMCfaesmND751U5alMaZatKAA1H-mN4lOJjlManzR51tu7cdk4YhYt5BVNW6Bt78VHh7V8wevvAsz0B42r9655WL5O_AwFruQTwL2VUo="}','{}',1,1795650852133017,1795650852133017,0);
INSERT INTO "jobs" VALUES(3,'job_2FwhHsnYoS','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3UlMMYCAI0NZWhEU_g1jeb_Pgu4w1V5OyQgOQfRUcfxLrmhcpgoJJxLmL2OrF-tZyb00k1VI8qbkBQt29v3ywtTD4T_Q6nf4tFrIuN0NlGgmpU="}','{}',1,1795650853681128,1795650853681128,0);
INSERT INTO "jobs" VALUES(4,'job_mKSyNrsJRl','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3UmuzV3TJqgnRpy9bRTT-QrmFdzrAyGQPm0oNKi5Xra2KbGyriuamjxnqoHvRgWuB8EbAMK_L-tjz201bKK39BRn3o5l88h38E2bv03mOhjdXs="}','{}',2,1795650853995003,1795650854175373,0);
INSERT INTO "jobs" VALUES(5,'job_Yq7ISohQJd','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3Umi7hkVion_6neZ0_XqyIYAqEQJMWuHLt1qS_KBfzzcg4JoHffnA0eHzJNAEYh23mpCUIJ4pe6AbFuyP3iL0Phj0H9MDTBWW_WT4DmWmk87gA="}','{}',2,1795650854331460,1795650854396298,0);
INSERT INTO "jobs" VALUES(6,'job_R6Zq9YMfns','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3UmoJTbMKHiWEg8KPb_2KKADOYbmEGGoUMXQtQsgvPs7Bpet7QELxb35R0he6LMSZsNS1ON9P337FOYwANIYKJ38YIS9rfc0bo9ZLfXOhItAws="}','{}',1,1795650854530157,1795650854530157,0);
INSERT INTO "jobs" VALUES(7,'job_D9qNcZ6Ljl','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3UmAlebr_HyLHXTtBCpfCeqJdSaAAkix-kkm1W43Yn2gDQyt00_-TToj9pXXDBMB4K3sYt23YZ6DxfWIMSYbn6mc24RXiVmKOAW7-667yKUNL4="}','{}',1,1795650854784783,1795650854784783,0);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrB3Uiinu6nCZpt6_j7Uqy03gxwT6h2Lna3_XZ64m50QKiMAHK_lNNG7QJkqDUg5ovZplVTQgXnrT8SLb6gjwY5g59eA==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, seen_at BIGINT, deaths INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1,1795650851494253,0);
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Ujcd92Wn_fqR4tLlk3Dxi_ZfXzOvrZM_uswnT7e_cI40TBeuPiwTgBszLOGi0R0k-RxjuYIW3j6p9Pgw4ofRXolBiWVBYR46hTAmINIu-HIOJCdlVc4RB5qrXs_xwnOmEl"}','{"team": "a"}',NULL,0,1795650851495225);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UkNJYcMaK-vuZGUOjudp5r7vjFjOJcwcWKVgzKgTJjMmsE5HslufZFl_DaJNUgrrAknG4_EMFzfPrTJuSjxfyaGNhjG6nBL9SBofMYBvI7IGRE6xLEd_81rKjU7680KW34"}','{"team": "a"}',NULL,0,1795650852133017);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UlqczabLHEr7mD-8LOg2R-W9DRfQAXId5Url0hJp5d5YgVeBJoiS8BuVLNbUbO8MyXnQ2tTnDzDzYhmFSEeAjn9D0PlLob1GAagLWXqtej_0Rtn_8KOiV4qYORsZqZuwBk"}','{"team": "a"}',NULL,0,1795650853681128);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Uleyk7HBrpi7yA5k-vy9SkuwVXgosEwfqNwL87KQ7XQBvKllQvMYEsbSO-BjkzuKxV5mKY2PtmCi5AvBcGa6d8Q1Otpjl-RqtTwWP0QeTb3u79GRnPNrUckZFnJ0aE-Qr3"}','{"team": "a"}',NULL,0,1795650853995003);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UmeO_3ULycpvjDRresM0tTHggGNuKTSfAqpGfT1OZmxoWNHDXF7cZglnqHiJJqUMCH2gaVJoIdMKYnqcezKw5SvkX_2fCjYD4JBeh3248BlBzhrROle2t6N9pcrBpOOBV0"}','{"team": "a"}',NULL,0,1795650854331460);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Um3fy_E4J0PHo4Ek9-qK1oQ_X8t9xAUWo25ndcD6uqyPTb34rxq0Po6tpHEk8JhHIze_gbYUuS_tNEKrdyebw5E4vdhUGnZA38DE0nFpNuRbIPQJRoSRMfGFPg3CET4L9P"}','{"team": "a"}',NULL,0,1795650854530157);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UmQZJDVa_-fShOxeM7QGBQF8mqenC655cl1-qffnUjSUVvXWNyr1KjZxvqCmYHd2MGoxt8b9YduHj8VnP3DTKObY7zqbZ5YIPW5EezVygr26Q2vRliaC7RgWTegVGzZ5aQ"}','{"team": "a"}',NULL,0,1795650854784783);
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
INSERT INTO "udfs" VALUES(1,'udf_zAcOBO3kpP','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795650851362110,1795650851362110);
CREATE INDEX ix_pipelines_is_preview ON pipelines (is_preview);
CREATE INDEX ix_connection_tables_profile_id ON connection_tables (profile_id);
CREATE INDEX ix_udfs_artifact ON udfs (artifact);
CREATE INDEX ix_connection_table_uses_pipeline_id ON connection_table_uses (pipeline_id);
CREATE INDEX ix_job_log_job_id ON job_log (job_id);
CREATE INDEX ix_job_output_job_id ON job_output (job_id);
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
INSERT INTO "sqlite_sequence" VALUES('job_output',6);
COMMIT;
