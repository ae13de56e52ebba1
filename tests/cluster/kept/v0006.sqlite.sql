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
INSERT INTO "checkpoints" VALUES('job_B9cjCxPJfS',7,1,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_rfphPDh6n0',7,2,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_wnvj44MxZL',7,3,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_Ds1n7QPgnH',7,4,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_TiOAZF0xVN',7,5,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
INSERT INTO "checkpoints" VALUES('job_MIhCJEZ6Dl',7,6,'ready','scheduled',1000000,1500000,'[]','{}',0,0);
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
INSERT INTO "connection_profiles" VALUES(1,'cp_ph679kn8tz','p','sqlite','','{"uri": "gAAAAABrB3cxr1zWXxzQs9GklW2yjm5EofikixM0RAiH0VRUyW7_LPkC3Ul08s-tSDyIwXKuiQFVinfOpW9mM1FqRhBItr500Q=="}',1795651377397875,1795651377397875);
CREATE TABLE connection_table_uses (
	table_id VARCHAR(200) NOT NULL, 
	pipeline_id VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id), 
	CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY(pipeline_id) REFERENCES pipelines (id) ON DELETE CASCADE, 
	CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY(table_id) REFERENCES connection_tables (id) ON DELETE RESTRICT
);
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Created');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Scheduling');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Running');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_CheckpointStopping');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Stopped');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Finished');
INSERT INTO "connection_table_uses" VALUES('ct_HzK9hm0ERB','pl_Failed');
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
INSERT INTO "connection_tables" VALUES(1,'ct_HzK9hm0ERB','t','t','source','sqlite','cp_ph679kn8tz','{}','{}',1795651377510832);
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
INSERT INTO "job_log" VALUES(1,'jlm_fvSUEyqNAR','job_B9cjCxPJfS',1795651378103208,1,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(2,'jlm_qjGlpoXtvI','job_rfphPDh6n0',1795651378296533,2,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(3,'jlm_q6eapEZB6b','job_wnvj44MxZL',1795651378536103,3,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(4,'jlm_7bVDR2KxuS','job_Ds1n7QPgnH',1795651378602827,4,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(5,'jlm_Ng2xLvv3r9','job_TiOAZF0xVN',1795651378651809,5,'info','Running','',NULL,NULL,NULL);
INSERT INTO "job_log" VALUES(6,'jlm_2qajih6JGM','job_MIhCJEZ6Dl',1795651378727650,6,'info','Running','',NULL,NULL,NULL);
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
INSERT INTO "job_statuses" VALUES('job_el0A86ppuX','Created',2000000,0,NULL,NULL,NULL,NULL,NULL,NULL,1,0,'{}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_B9cjCxPJfS','Scheduling',2000000,1,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cy-49L52Dm1dhbfew-3Z5Apdy55ud-JD1bdjnUOK8kco8tzobzFATbTJo4tzTiGazvR9VCT1dkizTrQc7ikVkaDSArxSYXn8eVGT7eBWEkt2hdqglg-ULG8qnkxtxHJcZq"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_rfphPDh6n0','Running',2000000,2,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cyvhgtRc-ZyumgbmxXbwGcbucq2YkpMxBBlFYGab0w8p3psCBt5idA7Fjqum5xqn-z-qYghVbCvcC4lGVqiSqB8spK5qK2a6d3B1yp4KIKD84-WmVUAYxEm1A8TRWeOpME"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_wnvj44MxZL','CheckpointStopping',2000000,3,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cyG-eiYGzldGDxQuEMpPxWvLFjLE2Py3eK-D_V-5w7fgj_rcjFregaSl5nTXgf_OTs2MRKrrKKtTvRIrDAvzUEI7wbKsqfm3_iXDzPrq46P9LbSR8CiLLH9ag3fMHseHNJ"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_Ds1n7QPgnH','Stopped',2000000,4,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cyHuQwTQLuSqj0Y2SVQcBR48TecDifEI1iLDeAHuzb8vJVHVQGqMYhQZlY7cV5RHRSviIc4onfWKl80L3S9pAKp1d4AkC-2tjk1ZlihYjRmJfmL1TYP8uspsmusyUyn5tJ"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_TiOAZF0xVN','Finished',2000000,5,'a controller',1000000,NULL,6,NULL,NULL,1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cyyeJKb2WkKnUvmgaxptD4vWIEFSFOhitpd3Lra9uNNxH7xoy8h8ZKcW_L-UyRGbg3wOqcKAp5tul3qKnsrmk20iKwutUamvyTsqUXK_CqgSrD5aZABmWHikDQxBfLVQXj"}',NULL,0,0,7);
INSERT INTO "job_statuses" VALUES('job_MIhCJEZ6Dl','Failed',2000000,6,'a controller',1000000,3000000,6,'a row failed','user',1,0,'{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3cyjZgKAIAf3JHUA4iDkthMyO12EiI344582P05Z3J9SilNczoB2yDmYXFQ3BBZyVck9303sN9YoDBid2iq8GPlY6ykvmwKMZ2FFQx1tZCmwPx57miZngWyeC0CHJZbkmkV"}',NULL,0,0,7);
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
INSERT INTO "jobs" VALUES(1,'job_el0A86ppuX','pl_Created','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cxfWoO2BvYBOelkp1czMKM2dH2t2GYBV_wR0fe6wD6L9g4-EQQ14PPYGoyhTcX1Jvhm_il20xVea-LGpwsyAEnvEJP3ete3l2ahidcKBRlCnA="}','{}',1,1795651377684123,1795651377684123,'/nowhere/checkpoints/job_el0A86ppuX',NULL,0);
INSERT INTO "jobs" VALUES(2,'job_B9cjCxPJfS','pl_Scheduling','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cyOKJZe-Q6e8yFLvKMZrxWQQrInMNrMJiT5NUfDh3ZRI6WNFqZy9c3Ha2M5cqnx3rh71a0EsoHnfwhhghVXBg4g0mENUVkuCzisubp0h5a410="}','{}',1,1795651378039572,1795651378039572,'/nowhere/checkpoints/job_B9cjCxPJfS',NULL,0);
INSERT INTO "jobs" VALUES(3,'job_rfphPDh6n0','pl_Running','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cyirXhZxhbGisspNDVlCd_Y5PBIVfNPcte9cbBgvTZrGguYUp31Ly-rJsiKkgxKLLa08042sMb5qKQsPPaXUS5urwsv0_KPVorq-ez4E0CXU4="}','{}',1,1795651378201206,1795651378201206,'/nowhere/checkpoints/job_rfphPDh6n0',NULL,0);
INSERT INTO "jobs" VALUES(4,'job_wnvj44MxZL','pl_CheckpointStopping','checkpoint',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cy_WL3t9D-pmHosY-NQWoKpYzS_BJUoFiKNDamJNfut0wUhZ4b9hHyDJqpeJGYxinAzCK3GEIzmpu1usMqpUPlt4ZEd3jK-uO6d07wwk6fhzQ="}','{}',2,1795651378379329,1795651378533994,'/nowhere/checkpoints/job_wnvj44MxZL',NULL,0);
INSERT INTO "jobs" VALUES(5,'job_Ds1n7QPgnH','pl_Stopped','immediate',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cyd6QcxwT5b9tESEmG6yzFUsIdsvPXyvCDHuokTYFYjdeV-3WWYeAUzBTfk4W9Ou2HK9-kj2TLNgqeCtKezimhoSL5wyD6terRbJ3-5aTU7uo="}','{}',2,1795651378549031,1795651378589412,'/nowhere/checkpoints/job_Ds1n7QPgnH',NULL,0);
INSERT INTO "jobs" VALUES(6,'job_TiOAZF0xVN','pl_Finished','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cyTu5TVDOF6voZKN4gl_Ev2Dplyw1IiiG4tznaA_AOTXwhaQZWzY2nwvXcGiOaT87iFYuEwOIuEhQ_fD71n5xGJS76oEbg-cyRnLjDINUThQo="}','{}',1,1795651378624516,1795651378624516,'/nowhere/checkpoints/job_TiOAZF0xVN',NULL,0);
INSERT INTO "jobs" VALUES(7,'job_MIhCJEZ6Dl','pl_Failed','none',2,10000000,NULL,0,'safe',0,'{"TOKEN": "gAAAAABrB3cyI9E-Fg5GzLCeVTnNIj0VxQZx_sTkVOT8MDLzs8UlNfZR7-ybuYRNK50tLFjUVivNcQ4Rc2TnNyE_Aa2sf20sOCydOG_ZGE_A04C_mVWR_gk="}','{}',1,1795651378694794,1795651378694794,'/nowhere/checkpoints/job_MIhCJEZ6Dl',NULL,0);
CREATE TABLE key_sample (
	id INTEGER NOT NULL, 
	sample TEXT NOT NULL, 
	CONSTRAINT pk_key_sample PRIMARY KEY (id)
);
INSERT INTO "key_sample" VALUES(1,'gAAAAABrB3cxfhN5YEqCW6nSoPqDjJzDPtE2gEEE-2SakaIf3scyd6vb-6EfuBr4T7RMl6zmefEFYhTBb3XAkximjGgy4gHfJQ==');
CREATE TABLE leader (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	term INTEGER NOT NULL, seen_at BIGINT, deaths INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_leader PRIMARY KEY (id)
);
INSERT INTO "leader" VALUES(1,'a controller',1,1795651377682744,0);
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
INSERT INTO "pipelines" VALUES(1,'pl_Created','Created','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cxTfBIspyAGP9kif0mjbmPHtR72tCWDNXI0N4MpA_pe3x-MaWqxJ0_M7ddwmu1ABUql2mjB0yJR2ScGV2eqpP86vgbYeSEsdFCA3N9SXuRnGLKcTSBn9nPNcUsPx4G0Nh_"}','{"team": "a"}',NULL,0,1795651377684123);
INSERT INTO "pipelines" VALUES(2,'pl_Scheduling','Scheduling','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cyaqktoDtmTh5vzByfbRHvAgmSoIw9ZiPMzYDV4ueIN1rvF1-iUX1KPUYYMkzFPpDSS3zdrpsrNtRyCM-46GDKHD6EbR2-J5nE_8_ws1E-rqFUQuTjr60QrQsoq479FE6V"}','{"team": "a"}',NULL,0,1795651378039572);
INSERT INTO "pipelines" VALUES(3,'pl_Running','Running','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cyVXAJg_hCYE_5f_NLKG1Dvo7mP2nXVxhtWwMGQLp60iZTh6KRJPZBh73p2hxiy0eLq1ldVHVMMLBUGhmIluaXbWMZYYVcbD7mzXgmU_oQ3jC-ZLLKiSWqe99VlFKK5pBj"}','{"team": "a"}',NULL,0,1795651378201206);
INSERT INTO "pipelines" VALUES(4,'pl_CheckpointStopping','CheckpointStopping','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cyNWt7Vb-C0vLo6zWkdX9B0PusAj4wJ7CSnVHR56aJmorRgQpgycC3pLU5DgWffyfcpH8aCZGtwMmLv5A4TBCMSwhxMpxsfb156TjECYnGPLIxzl_UrzPXXRe6FjfscKk0"}','{"team": "a"}',NULL,0,1795651378379329);
INSERT INTO "pipelines" VALUES(5,'pl_Stopped','Stopped','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cyVYM5JMof7UV65Duc3VmZKBCOS9wfMfnycGlc27hKwYGGnTngd9AVIPERAYs7XR_ljiBjXEaNItDxjb4jj2CoMzG_8-Zlyz2gYcGhl6ubRHOAS-lG8NDVdxGUmdpXCrXT"}','{"team": "a"}',NULL,0,1795651378549031);
INSERT INTO "pipelines" VALUES(6,'pl_Finished','Finished','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cypMVbn1WKAnoJsURdD-N1PMPdpSoy9MIc18VjqwScl5RprxYzxF8VYMTY4k-c1tiy7Zt8NziQ3sqBRND1oQa3G3sIblNABrTOnVIrEbxOXKR07dWvLpmyGNjRPOIzrm2w"}','{"team": "a"}',NULL,0,1795651378624516);
INSERT INTO "pipelines" VALUES(7,'pl_Failed','Failed','SELECT 1','[{"definition": "def f(): ...", "language": "python"}]','{"nodes": [], "edges": []}','{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3cyIVTyMrnIyC6pjyvK_xsiMlwVsa5fAXyFwHD_soYrO8SRWuu4egCJfkHZ9EQMPsTcnqNcEOB973LrOjlZj7JNzzIS5ppW-YB9xLugcCPL3n-pr-xqLCejf2pq8-LQhbBf"}','{"team": "a"}',NULL,0,1795651378694794);
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
INSERT INTO "udfs" VALUES(1,'udf_5AjOn65LN3','/','plane','plane','python','def plane(): ...',NULL,'abababababababababababababababababababababababababababababababab',1795651377588990,1795651377588990);
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
