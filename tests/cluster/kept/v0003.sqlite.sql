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
INSERT INTO "checkpoints" VALUES('job_RgOt9feI5K',7,1,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_ryMWCFfdS5',7,2,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_LiXtNEczzu',7,3,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_DvMH1civM8',7,4,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_lx98FjoO40',7,5,'ready','scheduled',1000000,1500000,'[]','{}');
INSERT INTO "checkpoints" VALUES('job_nT05qtSXZs',7,6,'ready','scheduled',1000000,1500000,'[]','{}');
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
INSERT INTO "connection_profiles" VALUES(1,'cp_Hsi17eBSlu','p','sqlite','','{"uri": "gAAAAABrBA4NtxH8_0h3nmjmcWdqY-fZfoYxFYQnmCFidsqXrbCJaHss15K6SjYM-LVOv89NmFKpAgiWbKlmVY4XnuVr4_O1FQ=="}',1795427853125884,1795427853125884);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_LpgjXyvMp9','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_LpgjXyvMp9','t','t','source','sqlite','cp_Hsi17eBSlu','{}','{}',1795427853136008);
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
INSERT INTO "job_log" VALUES(1,'jlm_aHNTvl9DVO','job_RgOt9feI5K',1795427853176668,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_coYGl6VdT8','job_ryMWCFfdS5',1795427853514130,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_BKvSHFh47I','job_LiXtNEczzu',1795427853537360,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_V99LGjLZST','job_DvMH1civM8',1795427853553012,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_jUUNmVeqjo','job_lx98FjoO40',1795427853579552,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_Q3VZ3ds1aU','job_nT05qtSXZs',1795427853600061,6,'info','Running','',NULL,NULL,NULL);
CREATE TABLE job_numbers (
	job_id VARCHAR(200) NOT NULL, 
	at BIGINT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at), 
	CONSTRAINT fk_job_numbers_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "job_numbers" VALUES('job_RgOt9feI5K',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_ryMWCFfdS5',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_LiXtNEczzu',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_DvMH1civM8',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_lx98FjoO40',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO "job_numbers" VALUES('job_nT05qtSXZs',1000000,'{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
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
INSERT INTO "job_output" VALUES(1,'job_RgOt9feI5K',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(2,'job_ryMWCFfdS5',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(3,'job_LiXtNEczzu',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(4,'job_DvMH1civM8',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(5,'job_lx98FjoO40',0,'preview',0,0,'[1]','[{"x": 1}]');
INSERT INTO "job_output" VALUES(6,'job_nT05qtSXZs',0,'preview',0,0,'[1]','[{"x": 1}]');
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
INSERT INTO "job_statuses" VALUES('job_uFwT0nquV3','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL);
INSERT INTO "job_statuses" VALUES('job_RgOt9feI5K','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4N9Z4KYbFwhOZ19EO-QuhViLr8lq7LegSAboiHFWi34y8znRyJuGeGgySqkL0x7_nxxk_rxWBVi14vuh1Yurk4pDlRCMgKMNPsNopM8X_VNrc0kbHGwmMJDWLY05g8Rj-H", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_ryMWCFfdS5','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4NIMoqyD1M58ip1FBh2SDa6e_rr_5dc1tesSwuEEiEpjP3dhJ5qQZPVi3Ieb0Zz7NYF36BSdY4OONutBVudrle0cHJ27otn8mpXPLdkQsxl1qC9HAi9H1SDB3AXMgqJq9H", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_LiXtNEczzu','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4NGAUOzO_wyzxV6AgAfFSsDUrdddgtTeCQll8FvIRToCmnG0_RFvqEIVsDONbZHNeYV7QHuuifc0I-ujj9HikFW12j2Z2mpEjdCdzo1GeTAzKoJmteBPMbwrg3qNeGJTpa", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_DvMH1civM8','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4Nk413H2bn5Y351twSwNggJYcQ6PEdlScmv8CuNQ5ht9dXVf7zMa5M3enmF5dn9REBaz_aGTfXpqTEpKS1XM-8_2GUUegrDznmNaj5Jd0HWjOXmK6GbpUL2c4WvcZAftXK", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_lx98FjoO40','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4NXC5q8_Qxkv8achzvWna6zzM0EA82LAdTqF5sPpjGBoNk0af5rvCJuQfpkkUI0XLFZIqteBywIQjfvEtPQYKPaR6A1V-A5kTl38M0oHjioptJTwqNLG9lLghU5_q90Iku", "scheduler_config": {}}',NULL);
INSERT INTO "job_statuses" VALUES('job_nT05qtSXZs','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBA4N_xrx_oXJHGIA4ykCQjpMnORp_rHwQxutep4LlnZbtDNVaj1o0RoTjTYilhEF6UVH4jbN4zN9Fu-Jzsy_Xeg7zCkIWVAM348ZPwJjk9Y79KqRojT_8tPTmJBbR6y8M3-j", "scheduler_config": {}}',NULL);
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
INSERT INTO "jobs" VALUES(1,'job_uFwT0nquV3','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4Nl21LO9P6Q0EIbMLdhjFzTvhHLPvDb5tBXorgXgp7dNTJ4J00al9EhGbGZqndbtNei45coAKl1Y2t4zwKLvy8GLfW1hOsHAx8ZiUJaoiTou8="}','{}',1,1,1795427853149190,1795427853149190);
INSERT INTO "jobs" VALUES(2,'job_RgOt9feI5K','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4Nd-xXlKkoqDqoqPmcVjA8e7Clr9EHrx35HPDI0JuQFsVA4Eywm5vzlA_HflaKJ0VcBzthK2fwmtxyeSgMkDV_iBC7I3wZ6IL8QBRRujf1nDg="}','{}',1,1,1795427853169381,1795427853169381);
INSERT INTO "jobs" VALUES(3,'job_ryMWCFfdS5','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4No731f5odW1TKVS71ao2Zi2-ScZQEVpQwyDtdwVt1jRaR4jO-vPyer77bZszAI9zkM87dKeOlEpuO7ixfS85_VroPfutBv_0ngMTngRiGrhA="}','{}',1,1,1795427853507394,1795427853507394);
INSERT INTO "jobs" VALUES(4,'job_LiXtNEczzu','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4N321ygDy2DC9K_TFLUFCyQ0WV7lwnUfRxBN9i2cFwQTy-dYRjwshULDUw5t8x83EJqjHUgZdiB26DqyDFDIkgGqvhVABfnsqRyT6HaqPAfos="}','{}',2,1,1795427853521922,1795427853534471);
INSERT INTO "jobs" VALUES(5,'job_DvMH1civM8','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4NTSqzGDcoxonOZ4NpnCqa9qgnO7G8Dvwz-s0z6t0cqDecCOdsrewpE_hK-qviacazpgpMiw8kaosyd8i5L-KycmO7EBjx7HQ5u-i3dBgnsKE="}','{}',2,1,1795427853545306,1795427853552586);
INSERT INTO "jobs" VALUES(6,'job_lx98FjoO40','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4N_ENofsqnaTInev2uIbiAFCgLHXvTr615QdF2v33KsLxh4nWiU-4qPc4LZQ35h3chK9iJu-w29qpEmtY-Uud-8KYQO4bWwEIa05OpyX0yIyo="}','{}',1,1,1795427853567612,1795427853567612);
INSERT INTO "jobs" VALUES(7,'job_nT05qtSXZs','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrBA4NophLMP44f3U6ryDPQf-f5Rsm5kx8p36dHdUqbmfQei06Rqdumk7Gh-VPN8nurWjaBxyz_ydupV22JSSau8lIcIHXNr2yiBbmZAEYmO_zHes="}','{}',1,1,1795427853593310,1795427853593310);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrBA4NhFL-IOzB294_KXGvpib9sxN76ngBeSR7p2FugrWOkFM-0A_ztQwAkjzborREmkL2PwrzK1f6LJ2oE_AFsV4zVA==');
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NmKFUVq6sEFgzsy4eyEmjX_S8H4T7iI2icdGMNqFLlqs8saPvqsyktxoSy4v-X5DlHW7bX0w-kil7rUvaCO-LkasaxBV-q_JW_X7PrPbk_jsfjwTSgiT90jh05isTutAi"}','{"team": "a"}',NULL,0,1795427853149190);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4Nj2pVFNzSGp5GukqiRw0418Fz9U7hFYD5tb23trmaIkiWK479fPiKl4_uaAwjpYR1MwQx7Npb2qSFMIYRSFolUul-Hfq8TkFMhumcSfDx0NLqpQM8ZgnElsiU3p_wGYqa"}','{"team": "a"}',NULL,0,1795427853169381);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NxhoZrjcz4aY27rN_SxkOeM9osVNBBqVfXAwLA-ssggRuxPLk-5eSW_vsP83xkZBbz1xtyzNs2o6H1br-xjkw-ew9IBVu7rzVDGe3ssBDcCqPuH63v3VG-WicsygBVan9"}','{"team": "a"}',NULL,0,1795427853507394);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NKQOsJ1e_T0i6N_YLUv4WctLndqnQqSqXsxCQ9UFzFHJuOtld9qH9hDsHnv5N0sydHhkzEsOrL1kf-C42FBx5eKoR5LEWO7TBwzjks1wSslYfXnnXzqtAxi2OmaYx2w_H"}','{"team": "a"}',NULL,0,1795427853521922);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NZpyMIPAXbej1rM5s5jTBBHpzzvm_JYf5RnUVw5wYrxZypYkNKChbA-qS4bh_XlPU6cx-t9fy8fxEvnuQm8_Xvk3QvMJ09ahpWr_VQo2VLMdq0Xj1WZg40oGGbUm6ehO_"}','{"team": "a"}',NULL,0,1795427853545306);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NwDDWNypT4wOB0K21JwG8C66pe0H4aOSoFBNknLJYYe5nf0Dm9frsOC4vd2VRZ1bvYOvrPi2Usk2wy3vvGxyDBSiu-msEVwn02C2DMKePABMlC0QftC1bGhNQT0gXGXBh"}','{"team": "a"}',NULL,0,1795427853567612);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBA4NkBmFHkwbF27GCIQXUOynXiNfk-PiGpg7d__7ANUJCcqWJvcm830Y2cTXF55pN16ILG65suWUqFpb34VIgH5mTIcekgD6NqOZh-KUq342hCoIoqx3f4vPMlBhFLlvslrj"}','{"team": "a"}',NULL,0,1795427853593310);
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
INSERT INTO "udfs" VALUES(1,'udf_2g3XSVFFG6','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795427853140472,1795427853140472);
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
