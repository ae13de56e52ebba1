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
INSERT INTO public.checkpoints VALUES ('job_mauZREDSBM', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_MhBohN9BPy', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_zd77JvhJn6', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_af4Yj9iuug', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_ll9EtTUQYY', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_8wZpfrcYxt', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.connection_profiles VALUES (1, 'cp_FcDI5g47Om', 'p', 'sqlite', '', '{"uri": "gAAAAABrB3bKi-xn6p6vXLBADamdTj9SZJ1OasysisKSZUaCasjbPxjaUUkap_lIBiQ1pdl0G_0DDoKsxlG6dDy-d0F3ec9Asg=="}', 1795651274358357, 1795651274358357);
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_v7HixaA8wI', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_v7HixaA8wI', 't', 't', 'source', 'sqlite', 'cp_FcDI5g47Om', '{}', '{}', 1795651274391424);
INSERT INTO public.job_log VALUES (1, 'jlm_j46STBp7iz', 'job_mauZREDSBM', 1795651274582264, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_3Bt4PJWdyH', 'job_MhBohN9BPy', 1795651274686609, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_N9u0xFLRSI', 'job_zd77JvhJn6', 1795651274812668, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_j9nvOa0PXj', 'job_af4Yj9iuug', 1795651274902641, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_pCbX3eAUH2', 'job_ll9EtTUQYY', 1795651275038299, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_cPMAtyMl7M', 'job_8wZpfrcYxt', 1795651275098342, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_statuses VALUES ('job_476sKApxpg', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_mauZREDSBM', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bKS9FlE3_PyNH9yPcfjUCpD7N1C-UYoFbwrwbc31adkI11RRT0eG8E_gDHv4b2fIwq6AsWKw_750NEk8ox7r3DKaq8dmkP2DMRHBktzAyov0uKgQnVN8qFkhX2QQ3CwyVU"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_MhBohN9BPy', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bKgx_iqD_q6_wliGKw_8xOxzYumETDAtDkvDN6ixYIRa0nMV5KSB_bdiIxlmhXwzdLNl9SvhnAjM5N_KZgG3KOY3jPP6-mKRwyU8_hpNgcPzWXFiGqqsLw_NOrd7UxFT7C"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_zd77JvhJn6', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bKFNv8CnCQn5sQkUPourzrkTT226_tCViRQppr3R8YCJMJ5choNzbb8mgday8ixfSHqE4QTnqsXMSa27pz0YvxacPl55uXmL2Gxn1WdCEodufZJbaicLEsWigtcCQLEvqm"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_af4Yj9iuug', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bKpAXWvcY-EPovWLgA5S9ey-QCnVt_bUoXExAbjR9JsGd6GlfgNx1Io-qNsyvtZV8P50lBppvKfdhP9jgkvVpkN01HusaA-wcjezBkVIs5HL8CRof4hTb9ec1KX6IGIOyd"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_ll9EtTUQYY', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bLJCTMNDYrehPB6B_dy8Y7rvwASd6H_EvN2p8gDXLJmdX3vpF5xoY2vTyJzIKL3Z2zKnvt6D2ASAr7NLNnjNGo49U0dUVNZmVKqLu2fQBlf47oMPwChFKUOG3L69B8mxju"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_8wZpfrcYxt', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3bLFzQWUikOn_fxPRYlm1gd7RMsy-yEpnINw9i8_HtaPnNjQ5r3AGHQK6crPRuC_VxGjZbJAO0EhSaAoyzgWPq7n-T5E5e5OIWS1PXrXIgFXkYYkMr2vloafCZ88nVPqyAV"}', NULL, 0, 0, 7);
INSERT INTO public.jobs VALUES (1, 'job_476sKApxpg', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bK-4EhRX0ALwFrYQuSedrK6G-I_Fskqd3BppjZs9T2dVOKN0NsJdAB5SETBMCbahvEXiuBsDwfyeCNzOfNLFr-89G9u3j1neaxj1PLZj8Qkt4="}', '{}', 1, 1795651274437495, 1795651274437495, '/nowhere/checkpoints/job_476sKApxpg', NULL, 0);
INSERT INTO public.jobs VALUES (2, 'job_mauZREDSBM', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bKiZoqrIzx7ApzUoRl7VTED2nEgsp9iznitCiVsWi9r6sTNXCwSKo4gaTDdkysRlpUARJ35bzS8nOwRSN0FQsMP4N2_PZMHFS7vOBqa_C-xfs="}', '{}', 1, 1795651274530879, 1795651274530879, '/nowhere/checkpoints/job_mauZREDSBM', NULL, 0);
INSERT INTO public.jobs VALUES (3, 'job_MhBohN9BPy', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bK_0sYXToqzpebSyLTfLMhBaUdJHzgP0sEl5xOSBJs-pqANwqvbhTMrbAdKBR4N_dRhAMTBAUJi3Ns_RXPVm71N3EPHZSa2CxQd9V0Eu_hykA="}', '{}', 1, 1795651274639452, 1795651274639452, '/nowhere/checkpoints/job_MhBohN9BPy', NULL, 0);
INSERT INTO public.jobs VALUES (4, 'job_zd77JvhJn6', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bKpXaJMLaWEYTQKMQzhlukRaiWoIzst6tcqIbNkHl9wlHE5oqDO9B8GWgRYl8vyQ49fMsVotpbKHQu28dexrv6FNvnK-pjPndWQ67hBhHRzpU="}', '{}', 2, 1795651274723015, 1795651274809850, '/nowhere/checkpoints/job_zd77JvhJn6', NULL, 0);
INSERT INTO public.jobs VALUES (5, 'job_af4Yj9iuug', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bKzKSPQanrb3iEf4QNNx3Z4Jeh1eSQ17XP7ATbb1sm6UjzPCTMO1VwmjcwBbGZbPjXy-sbjibhfvQ8iOTGEQRNMHNlP1LIUxYbdZcJH_QmsJ0="}', '{}', 2, 1795651274838894, 1795651274895367, '/nowhere/checkpoints/job_af4Yj9iuug', NULL, 0);
INSERT INTO public.jobs VALUES (6, 'job_ll9EtTUQYY', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bKvjKuf6iwso9B0LGHLf91sZNg8XY4ghGJU0AJXDeNlUkz3RcZfuDtyG5rj7VjwsckWK5D0sQrpm6zPnEPqz5_DHHSm4JgDZrAOZyUddqQ4Jw="}', '{}', 1, 1795651274951175, 1795651274951175, '/nowhere/checkpoints/job_ll9EtTUQYY', NULL, 0);
INSERT INTO public.jobs VALUES (7, 'job_8wZpfrcYxt', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3bLdQQnYma1-pZzSIretT-8nv--0aTdB6uQ7IGDDhk721pGZcUFjfsp2jOFvPbxqA9ysd5EXzdhL_wREiiGpQKHe2gIpbjwMJ1LbXKTgF6b9Rs="}', '{}', 1, 1795651275063108, 1795651275063108, '/nowhere/checkpoints/job_8wZpfrcYxt', NULL, 0);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrB3bK7a6gaaY0deMMKG_SV075rSan6X5eKiQRQTC8QhH8Z2JAqYa9F20J8bWXu6yc30qMGHi0npoSVn6tT8vd6JMWBw==');
INSERT INTO public.leader VALUES (1, 'a controller', 1, 1795651274436822, 0);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bKSofqBKaB72DtaAgDCZmpti3zf8Qa2usKDZmCKMxvtkPi5hAcNIKI9srTXRiXyRyWshg-1KuItjKVuHe2pMvNz89R0OGvua57Gu6vYV2XhKhxlWtqnijxbdhZ2D5kgxcJ"}', '{"team": "a"}', NULL, false, 1795651274437495);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bK96oaik_SUgh6I20MemmxhDr9yKYQqXYap8y9giT62oVsY9l3fPtzno_Peg7dpxEEnevmOdvGwkku6rXrcTteY9PQRFmF8NVEEbJaVIB7bVrxRPmKMPzJQZTiPrhmIqVz"}', '{"team": "a"}', NULL, false, 1795651274530879);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bK3uCS9NfTynTII9E-L3XhRaZLszYbFTzjz5JsSp75klVvSsEElRwgvm7P52SIe1n2Rh5xoHgT3UwaxRdbeDWSpe9wktCrhdQRGcEBkAnAJq2SE2gUSM10fQhCDiXtwrF0"}', '{"team": "a"}', NULL, false, 1795651274639452);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bKNguIadqWFA8N2dIr3Mt0EN6CuQhniSFx9vHp6fMTBQitv23reIPd2x0PIcA7RSIwVX2RaCsAib_iaSKDyctCwo9_JJxaNw3lU9vM4CeST7XYSerD-7ZDJ6jZIRycfQ8h"}', '{"team": "a"}', NULL, false, 1795651274723015);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bKo1QlRR27tZQzvL0HS7GEMToG9uCzPUEyTeQ1fS1fjs0T2PbmrdG1LwvagYHsrw9NGAUXsE5ZAm1ZskRmNhwnI0vs63-NzVx3vttgUKY96XTI8ehXJWD4SVZz-tieB7vp"}', '{"team": "a"}', NULL, false, 1795651274838894);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bKqcpdN7mw1wisvPiDSFTU_gNFkC1zSSOztAueDyis-ZAAetvIwLkdXRAAjhtSwutxXJAIK0ATmuAK2SrxrBB-Zu-sdeOZ2czXQmVjSmvssEKN_3Qf6_umU8VYgognsVxQ"}', '{"team": "a"}', NULL, false, 1795651274951175);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3bLib3UVihgWwT61awmI27f4sf6HZYEcBS4H4b6x1xDN4wibdGMyJI_jhZgXic1IlIW-6CJQpihbIVU1eLlqZ3x60Gj5esywFjyDMdmzNyM1nUZjwTRvY73qn3PIjonmdIm"}', '{"team": "a"}', NULL, false, 1795651275063108);
INSERT INTO public.udfs VALUES (1, 'udf_K6TA8iGde8', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795651274410239, 1795651274410239);
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
