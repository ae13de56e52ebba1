CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.artifact_uses (
    artifact character varying(64) NOT NULL,
    pipeline_id character varying(200) NOT NULL
);
CREATE TABLE public.artifacts (
    sha256 character varying(64) NOT NULL,
    name text NOT NULL,
    language character varying(8) NOT NULL,
    size bigint NOT NULL,
    created_at bigint NOT NULL,
    place text
);
CREATE TABLE public.checkpoints (
    job_id character varying(200) NOT NULL,
    epoch integer NOT NULL,
    generation integer NOT NULL,
    state character varying(16) NOT NULL,
    checkpoint_type character varying(16) NOT NULL,
    start_time bigint NOT NULL,
    finish_time bigint,
    events json NOT NULL,
    operators json NOT NULL,
    history integer DEFAULT 0 NOT NULL,
    retained boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_checkpoints_checkpoint_type CHECK (((checkpoint_type)::text = ANY ((ARRAY['scheduled'::character varying, 'stopping'::character varying])::text[]))),
    CONSTRAINT ck_checkpoints_state CHECK (((state)::text = ANY ((ARRAY['inprogress'::character varying, 'ready'::character varying, 'failed'::character varying])::text[])))
);
CREATE TABLE public.connection_profiles (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    connector text NOT NULL,
    description text NOT NULL,
    config json NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.connection_profiles_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.connection_profiles_serial_seq OWNED BY public.connection_profiles.serial;
CREATE TABLE public.connection_table_uses (
    table_id character varying(200) NOT NULL,
    pipeline_id character varying(200) NOT NULL
);
CREATE TABLE public.connection_tables (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    table_type character varying(8) NOT NULL,
    connector text NOT NULL,
    profile_id character varying(200),
    config json NOT NULL,
    schema json NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT ck_connection_tables_table_type CHECK (((table_type)::text = ANY ((ARRAY['source'::character varying, 'sink'::character varying, 'lookup'::character varying])::text[])))
);
CREATE SEQUENCE public.connection_tables_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.connection_tables_serial_seq OWNED BY public.connection_tables.serial;
CREATE TABLE public.job_log (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    job_id character varying(200) NOT NULL,
    created_at bigint NOT NULL,
    generation integer NOT NULL,
    level character varying(8) NOT NULL,
    message text NOT NULL,
    details text NOT NULL,
    operator_id text,
    task_index integer,
    error_domain character varying(16),
    CONSTRAINT ck_job_log_error_domain CHECK (((error_domain)::text = ANY ((ARRAY['user'::character varying, 'external'::character varying, 'internal'::character varying])::text[]))),
    CONSTRAINT ck_job_log_level CHECK (((level)::text = ANY ((ARRAY['info'::character varying, 'warn'::character varying, 'error'::character varying])::text[])))
);
CREATE SEQUENCE public.job_log_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.job_log_serial_seq OWNED BY public.job_log.serial;
CREATE TABLE public.job_statuses (
    job_id character varying(200) NOT NULL,
    state character varying(24) NOT NULL,
    state_since bigint NOT NULL,
    generation integer NOT NULL,
    controller text,
    start_time bigint,
    finish_time bigint,
    tasks integer,
    failure_message text,
    failure_domain character varying(16),
    restarts integer NOT NULL,
    restart_nonce integer NOT NULL,
    settings json NOT NULL,
    worker json,
    restored integer DEFAULT 0 NOT NULL,
    history integer DEFAULT 0 NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    CONSTRAINT ck_job_statuses_failure_domain CHECK (((failure_domain)::text = ANY ((ARRAY['user'::character varying, 'external'::character varying, 'internal'::character varying])::text[]))),
    CONSTRAINT ck_job_statuses_state CHECK (((state)::text = ANY ((ARRAY['Created'::character varying, 'Compiling'::character varying, 'Scheduling'::character varying, 'Running'::character varying, 'Rescaling'::character varying, 'Restarting'::character varying, 'Recovering'::character varying, 'CheckpointStopping'::character varying, 'Stopping'::character varying, 'Stopped'::character varying, 'Finishing'::character varying, 'Finished'::character varying, 'Failing'::character varying, 'Failed'::character varying])::text[])))
);
CREATE TABLE public.jobs (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    pipeline_id character varying(200) NOT NULL,
    stop character varying(16) NOT NULL,
    parallelism integer NOT NULL,
    checkpoint_interval_micros bigint NOT NULL,
    ttl_micros bigint,
    restart_nonce integer NOT NULL,
    restart_mode character varying(8) NOT NULL,
    history integer NOT NULL,
    env_vars json NOT NULL,
    scheduler_config json NOT NULL,
    revision integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    place text,
    restore json,
    fulfilled integer DEFAULT 0 NOT NULL,
    CONSTRAINT ck_jobs_parallelism CHECK (((parallelism >= 1) AND (parallelism <= 1024))),
    CONSTRAINT ck_jobs_restart_mode CHECK (((restart_mode)::text = ANY ((ARRAY['safe'::character varying, 'force'::character varying])::text[]))),
    CONSTRAINT ck_jobs_stop CHECK (((stop)::text = ANY ((ARRAY['none'::character varying, 'checkpoint'::character varying, 'graceful'::character varying, 'immediate'::character varying, 'force'::character varying])::text[])))
);
CREATE SEQUENCE public.jobs_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.jobs_serial_seq OWNED BY public.jobs.serial;
CREATE TABLE public.key_sample (
    id integer NOT NULL,
    sample text NOT NULL
);
CREATE TABLE public.leader (
    id integer NOT NULL,
    controller text NOT NULL,
    term integer NOT NULL,
    seen_at bigint,
    deaths integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.leftovers (
    place text NOT NULL
);
CREATE TABLE public.pipelines (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    udfs json NOT NULL,
    graph json NOT NULL,
    program json NOT NULL,
    tags json NOT NULL,
    state_url text,
    is_preview boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.pipelines_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.pipelines_serial_seq OWNED BY public.pipelines.serial;
CREATE TABLE public.udfs (
    serial bigint NOT NULL,
    id character varying(200) NOT NULL,
    prefix text NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    language character varying(8) NOT NULL,
    definition text NOT NULL,
    description text,
    artifact character varying(64),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT ck_udfs_language CHECK (((language)::text = ANY ((ARRAY['python'::character varying, 'rust'::character varying, 'c'::character varying])::text[])))
);
CREATE SEQUENCE public.udfs_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.udfs_serial_seq OWNED BY public.udfs.serial;
ALTER TABLE ONLY public.connection_profiles ALTER COLUMN serial SET DEFAULT nextval('public.connection_profiles_serial_seq'::regclass);
ALTER TABLE ONLY public.connection_tables ALTER COLUMN serial SET DEFAULT nextval('public.connection_tables_serial_seq'::regclass);
ALTER TABLE ONLY public.job_log ALTER COLUMN serial SET DEFAULT nextval('public.job_log_serial_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN serial SET DEFAULT nextval('public.jobs_serial_seq'::regclass);
ALTER TABLE ONLY public.pipelines ALTER COLUMN serial SET DEFAULT nextval('public.pipelines_serial_seq'::regclass);
ALTER TABLE ONLY public.udfs ALTER COLUMN serial SET DEFAULT nextval('public.udfs_serial_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v0006');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_AcBHiL5wVs', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_nfez7Y6j8M', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_EgfcB5d50D', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_mahee59IlU', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_1ABAksDt6P', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_6X8sSGtUse', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.connection_profiles VALUES (1, 'cp_tcNqHGGdmT', 'p', 'sqlite', '', '{"uri": "gAAAAABrB3c0_pp9IYJ4PpA5fRqf8TUgJX1V7UfOPWE794fq8XDw49sh_KfOUGpar5jbyZgqjdcflT9ORo9hXEw_Bps_rHZjkA=="}', 1795651380622288, 1795651380622288);
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_5VXAPio2h1', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_5VXAPio2h1', 't', 't', 'source', 'sqlite', 'cp_tcNqHGGdmT', '{}', '{}', 1795651380646725);
INSERT INTO public.job_log VALUES (1, 'jlm_PoWZ6VOtqK', 'job_AcBHiL5wVs', 1795651380846208, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_nUCfUsxims', 'job_nfez7Y6j8M', 1795651380946239, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_vvMvkQ2b6v', 'job_EgfcB5d50D', 1795651381090961, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_wKFqr9CpSf', 'job_mahee59IlU', 1795651381191428, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_EjSXVjTUuG', 'job_1ABAksDt6P', 1795651381264043, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_TIKtTXENxA', 'job_6X8sSGtUse', 1795651381321395, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_statuses VALUES ('job_TMSlrPyC2F', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_AcBHiL5wVs', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c0jqA88G5xRz04o2fqNmMb-XhnR52Q8SHVBXtBJsZ2cF5-HVXSJeY0U9KozRN8fC2FJI-c-Mb17l3cpLu77mcwbO05_LjSoJpug2cYpzfJaZeAsKJN8uP3Bsv1TcHL2oHd"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_nfez7Y6j8M', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c0jdo-NCY8-SYZ-tGk6LpR8yJl8c7oytY1Djt0wzvFhZlEDvGesRacSBAMobSuwBf3AJPTzNW9lbWEfeOUJD0LC2RIUScZHf6mQc20GKNY36AsCg2hZa8AXKmvD6PBvTcN"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_EgfcB5d50D', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c1v6emVGaj7KKYwjpbfmC4yaS5wGjZBCp2tACLUsNVh_XMOEbVnCyYFa9LLJbHrOFPc4eQWUwUgJsv0Yb6hV5zNzJEwrYXq8dQuWAPjHF8EjqDZcsjeKjQ9dWxNWKDWJ5E"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_mahee59IlU', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c1ha4MLBipMlIs5EO9U7AobHzB4jws_prmKdBrifVn4j0olB0sVAKuWQoEMOTbmXf6rX8aQuowgrp-F42Yz3BPle3APljgjfIVNiAF7ggpVtxaezs6DndgTf8y-05YwF9d"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_1ABAksDt6P', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c12WRCxoQ3gsHYyGeo0DGtqwxV4jLDj8pRSpXCBB2rC7y4V6Cw4lrmCMuuhzNxN2Ptny3o9c3VM4nH0I33m3oFkJgq_11W9tfjqtekV2fiRiz8JIZjp6XhOSUB1Uo8JHvb"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_6X8sSGtUse', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3c1pe3aB_EXOzZWIssJjTzG8aYuRRE9yWxd-t3rmxOMNAnHq4RPI5VaVSxrpH0vl0VaStfcIWYQYxdUuBBRKOwm5MzA2pMTWn1VKNuJYdLPU71SpmqmLLZEiHnuuFFANDsY"}', NULL, 0, 0, 7);
INSERT INTO public.jobs VALUES (1, 'job_TMSlrPyC2F', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c0bIdFJ1ttf3aVHogKsXJ0RgwKDcvWDTAxH09LN-bxKPdWe6YbI0m-zZYS-62JIuf3uAG1e9yB1nPLMkeQLEfsKD5O0CMFJuFmXXYH4aqm-7M="}', '{}', 1, 1795651380687509, 1795651380687509, '/nowhere/checkpoints/job_TMSlrPyC2F', NULL, 0);
INSERT INTO public.jobs VALUES (2, 'job_AcBHiL5wVs', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c0xpzsPHY7GTSusDzXL3_MA3BK_ubr37st0g2n0y9gcQ1urnEOp5LnYfPk33FIA7yvvFxc0hazOMLUHqt8H2LO9dbLeor9dUbf2Akfha2pdsI="}', '{}', 1, 1795651380786770, 1795651380786770, '/nowhere/checkpoints/job_AcBHiL5wVs', NULL, 0);
INSERT INTO public.jobs VALUES (3, 'job_nfez7Y6j8M', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c0Yq-_UFkINkjMr3mtGK35uVo3jXIikosRdty8q7X0FWvMKAUsnsT8ClYX8_jDvP1_hVRmerqzNAhOEkX5__qOBWgDFnmRkg74voZeN2oGGg4="}', '{}', 1, 1795651380906882, 1795651380906882, '/nowhere/checkpoints/job_nfez7Y6j8M', NULL, 0);
INSERT INTO public.jobs VALUES (4, 'job_EgfcB5d50D', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c0TBF80SNMGGgVCaLDX2r2T3sl9vqJho0zVDz8cl1-gLZniBnKwd3MChq1PECL6_QHn0-9nq8mKlv_D5NV2wN14gbqpxcw8VwCDA25UnAtGWk="}', '{}', 2, 1795651380981903, 1795651381085739, '/nowhere/checkpoints/job_EgfcB5d50D', NULL, 0);
INSERT INTO public.jobs VALUES (5, 'job_mahee59IlU', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c1d55R-m6kunEC7_4pvxPNmev1iS_MoFq25WjpWAi_QInejdpRjh68qBCLuZXeCBc-XHHkVd6d8LfAr4P7wOPi5sAHhPCQLAh2k93FvU7ptcs="}', '{}', 2, 1795651381118526, 1795651381181943, '/nowhere/checkpoints/job_mahee59IlU', NULL, 0);
INSERT INTO public.jobs VALUES (6, 'job_1ABAksDt6P', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c1W28HGh7XNW2Yz7W7J_eFVzu5PQwk4s6FH2CmRe10muX0asnZNWh6XivfskknvjfB7nuT0A7pSewPS322BzEp347eMR6v_vx24605Dw4u_Jk="}', '{}', 1, 1795651381215270, 1795651381215270, '/nowhere/checkpoints/job_1ABAksDt6P', NULL, 0);
INSERT INTO public.jobs VALUES (7, 'job_6X8sSGtUse', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3c1SCoO1bmCRWOMSijb5h2Go-Eb1FBFNxjg7zb2QLr9HMvKLQCtrCPXoGCtR241WMCHyX_IjN9cmJ9-XcLO12wemzVMCKnclCgLsMWyHCIFMkE="}', '{}', 1, 1795651381282799, 1795651381282799, '/nowhere/checkpoints/job_6X8sSGtUse', NULL, 0);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrB3c06XSQ9lvhIR1Xw--BhEUmD0rAGdAqJR75YQomYvzeu0gy-ncEzwFHuIGv0IQrUQdj3qS_nxlDOhIxdkIQOIT6Aw==');
INSERT INTO public.leader VALUES (1, 'a controller', 1, 1795651380686875, 0);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c0atm6VQHC7Bzm2EmbTY8gHWs6GGhKkhbNfi8PkkEMMfE8qs86eBj1w3kV8_pr0U7UXlLL-goVvUp9ojoBMctYo5mX03hfOgBYaPrEBojjJelaZybgjNkrZJLVHw00Ue_l"}', '{"team": "a"}', NULL, false, 1795651380687509);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c0AIdz9wtfOJK2ZtV2OLSiIggIVaQSypqpI1qposDkeoFp8JBZT78anTUHqSPkug4_TUATPupHL_F5-qOWPEH5iEF3LT-pEyo_BYFg9zSdL2eJtkIMLGhmhECnmLRdlss0"}', '{"team": "a"}', NULL, false, 1795651380786770);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c0NDLzNMkj4m6I2CZdfMRQxG9oxx7-li0grMxJXFjPJhLxHc-OTG3by8dz2L-6cEDMUVCyQbDS2U9DzZqlxtQ1HQnlQ0tLL2BLRhqKWSyPJfKQ4KYfdgVBvLcLmFu9tYji"}', '{"team": "a"}', NULL, false, 1795651380906882);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c0i5pOQtSVavnxUlDZsv9kbaztnKpkw38wXesYCW2HOO4k_PT6-V_jYnK7hq6UNgKsVPsxhq20pjztcdN9hnHsafLZhBeBn2luMapCeMaXYkfAEnSI1Pm43klSZyseiaMv"}', '{"team": "a"}', NULL, false, 1795651380981903);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c1FuK_VHRA6dCklPqpycWgJjTNx95e8Zo7d0Ye6Oii0lwz5a779b9q74qdk-mkdDYFr7IvkKM3dKxwZ4HZMsQQHFXwaRVJX5BQ4vJ0AEfDaqApxh4Y33DA9oHnxh5eOVCE"}', '{"team": "a"}', NULL, false, 1795651381118526);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c1f2iOL41oh5LG069tIrBEh4fGeQT0K8vOC98c4k0VpkkbyMztmdG9j3337p2aVzieIq6ew8y3312lBqbKL76SzntcJSK7AqK6FeMnyyf2UI533AR-w3uZ-TuyMPmVMOuG"}', '{"team": "a"}', NULL, false, 1795651381215270);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3c1Msv4u-t0Urs5gfZbFDZvy_FSJnDbcf7X-mbUeCIcgSdT-MpJc_O7R4FQAzgN2AVh7VnUJymYTYrMiahfgMVlS9g5BdwRSUQ6NvZA0_qFVRZJZ4S8Ub-A5Pjf_o8GHspA"}', '{"team": "a"}', NULL, false, 1795651381282799);
INSERT INTO public.udfs VALUES (1, 'udf_15YmjxV2SO', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795651380670708, 1795651380670708);
SELECT pg_catalog.setval('public.connection_profiles_serial_seq', 1, true);
SELECT pg_catalog.setval('public.connection_tables_serial_seq', 1, true);
SELECT pg_catalog.setval('public.job_log_serial_seq', 6, true);
SELECT pg_catalog.setval('public.jobs_serial_seq', 7, true);
SELECT pg_catalog.setval('public.pipelines_serial_seq', 7, true);
SELECT pg_catalog.setval('public.udfs_serial_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT pk_artifact_uses PRIMARY KEY (artifact, pipeline_id);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT pk_artifacts PRIMARY KEY (sha256);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT pk_checkpoints PRIMARY KEY (job_id, epoch);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT pk_connection_profiles PRIMARY KEY (serial);
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT pk_connection_table_uses PRIMARY KEY (table_id, pipeline_id);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT pk_connection_tables PRIMARY KEY (serial);
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT pk_job_log PRIMARY KEY (serial);
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT pk_job_statuses PRIMARY KEY (job_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (serial);
ALTER TABLE ONLY public.key_sample
    ADD CONSTRAINT pk_key_sample PRIMARY KEY (id);
ALTER TABLE ONLY public.leader
    ADD CONSTRAINT pk_leader PRIMARY KEY (id);
ALTER TABLE ONLY public.leftovers
    ADD CONSTRAINT pk_leftovers PRIMARY KEY (place);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT pk_pipelines PRIMARY KEY (serial);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT pk_udfs PRIMARY KEY (serial);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT uq_connection_profiles_id UNIQUE (id);
ALTER TABLE ONLY public.connection_profiles
    ADD CONSTRAINT uq_connection_profiles_name UNIQUE (name);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT uq_connection_tables_id UNIQUE (id);
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT uq_connection_tables_key UNIQUE (key);
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT uq_job_log_id UNIQUE (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT uq_jobs_id UNIQUE (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT uq_jobs_pipeline_id UNIQUE (pipeline_id);
ALTER TABLE ONLY public.pipelines
    ADD CONSTRAINT uq_pipelines_id UNIQUE (id);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT uq_udfs_id UNIQUE (id);
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT uq_udfs_key UNIQUE (key);
CREATE INDEX ix_artifact_uses_pipeline_id ON public.artifact_uses USING btree (pipeline_id);
CREATE INDEX ix_connection_table_uses_pipeline_id ON public.connection_table_uses USING btree (pipeline_id);
CREATE INDEX ix_connection_tables_profile_id ON public.connection_tables USING btree (profile_id);
CREATE INDEX ix_job_log_job_id ON public.job_log USING btree (job_id);
CREATE INDEX ix_job_statuses_state ON public.job_statuses USING btree (state);
CREATE INDEX ix_jobs_unfulfilled ON public.jobs USING btree (id) WHERE (revision <> fulfilled);
CREATE INDEX ix_pipelines_is_preview ON public.pipelines USING btree (is_preview);
CREATE INDEX ix_udfs_artifact ON public.udfs USING btree (artifact);
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT fk_artifact_uses_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT fk_artifact_uses_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT fk_checkpoints_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT fk_connection_table_uses_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.connection_table_uses
    ADD CONSTRAINT fk_connection_table_uses_table_id FOREIGN KEY (table_id) REFERENCES public.connection_tables(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.connection_tables
    ADD CONSTRAINT fk_connection_tables_profile_id FOREIGN KEY (profile_id) REFERENCES public.connection_profiles(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.job_log
    ADD CONSTRAINT fk_job_log_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT fk_job_statuses_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT fk_udfs_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
