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
CREATE TABLE public.job_numbers (
    job_id character varying(200) NOT NULL,
    at bigint NOT NULL,
    numbers json NOT NULL
);
CREATE TABLE public.job_output (
    serial bigint NOT NULL,
    job_id character varying(200) NOT NULL,
    number integer NOT NULL,
    operator_id text NOT NULL,
    subtask_idx integer NOT NULL,
    start_id bigint NOT NULL,
    timestamps json NOT NULL,
    batch text NOT NULL
);
CREATE SEQUENCE public.job_output_serial_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.job_output_serial_seq OWNED BY public.job_output.serial;
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
ALTER TABLE ONLY public.job_output ALTER COLUMN serial SET DEFAULT nextval('public.job_output_serial_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN serial SET DEFAULT nextval('public.jobs_serial_seq'::regclass);
ALTER TABLE ONLY public.pipelines ALTER COLUMN serial SET DEFAULT nextval('public.pipelines_serial_seq'::regclass);
ALTER TABLE ONLY public.udfs ALTER COLUMN serial SET DEFAULT nextval('public.udfs_serial_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v0005');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_8zPukzyLvL', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_RPpDbAuFik', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_LXMftYgeK0', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_uQUUxSXgeT', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_AZxl4EnRsy', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_NZsmEW12bD', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.connection_profiles VALUES (1, 'cp_mACr7djmCf', 'p', 'sqlite', '', '{"uri": "gAAAAABrB3UsQ2y0FKBh21LPjqJqjLoHZuOU34h7JA9rnTSPbTUJBuJoj7UMGpbRdDUMOngWApqBX6vhwSqIbc4wkWFJSi4ptg=="}', 1795650860362369, 1795650860362369);
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_Nh26YBKt0Q', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_Nh26YBKt0Q', 't', 't', 'source', 'sqlite', 'cp_mACr7djmCf', '{}', '{}', 1795650860675026);
INSERT INTO public.job_log VALUES (1, 'jlm_vY9GjaMXwh', 'job_8zPukzyLvL', 1795650861326240, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_zOrkmY6V0a', 'job_RPpDbAuFik', 1795650862166268, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_A3XAYUGWRN', 'job_LXMftYgeK0', 1795650862758295, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_sZypJIutle', 'job_uQUUxSXgeT', 1795650863498423, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_pm9GZ3JjsQ', 'job_AZxl4EnRsy', 1795650864118667, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_p1mEgQY26Y', 'job_NZsmEW12bD', 1795650864752391, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_numbers VALUES ('job_8zPukzyLvL', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_RPpDbAuFik', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_LXMftYgeK0', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_uQUUxSXgeT', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_AZxl4EnRsy', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_NZsmEW12bD', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_output VALUES (1, 'job_8zPukzyLvL', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (2, 'job_RPpDbAuFik', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (3, 'job_LXMftYgeK0', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (4, 'job_uQUUxSXgeT', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (5, 'job_AZxl4EnRsy', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (6, 'job_NZsmEW12bD', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_statuses VALUES ('job_9Fa1xkXvvI', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL);
INSERT INTO public.job_statuses VALUES ('job_8zPukzyLvL', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UtsxsrTKD7T5aZxUPjnYXm15a8c-Lh8z5mm86U1rg15S6mwdg2Z2aMLSp6LCDuVzP4_MfLgRzIDxpGpZDBkgFGhQ4c2_8tQXM87LZFmU0NXMEA7haTvUfB50OQa3sI8j6g", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_RPpDbAuFik', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UuOPLSzq9ZKmUsI9H_AAJjoC2MPFa1nDU7_s7SqsKtt-gzYqXtVQyKRBDONOo_rFr96kWthmV5UIPRZmd-1rNS_MyWYO1MirIlPz0dzm31W2iOoA2bPG9atovlDkih-sR_", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_LXMftYgeK0', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UuXJwChIUtdEeF3DNUItXUXXkksCb4eehwJE-a6YvXcyeqDkNB1hmwyOfmaIsuhbzRnG9K_CTsX0mZsV4WjLdKW15jWdYsUEejg74olG-ssT2itcoisclmmif2MFh7rNtE", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_uQUUxSXgeT', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UvTWMrzxj93MWjo8gmMgeLazENioKMjmfiF4N-oLDdrjVNbpynOe8Z1FhNHH0RI1f53hh24VxkK2LehRsRRbYstVEX4zyLL_7vCWOHgWSSKRy8_FS85b0a5dQNdsqCRN5G", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_AZxl4EnRsy', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3Uwx7M0r24lq5BdVAOmtyDIMf3I76ih3rd3hYjyFCrsAlFe8RLZ8YMO7dlRbAF7CiwwEvHF4FMmN2sWSUa_OLPgzKBgSgefFQlGAUE_i-tdXtCYaXUNQ9WNt7ZLducbLeIy", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_NZsmEW12bD', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3UxaYdKjBarlkVn0XGx_LEKRkkX14sR7B96MyjFJHo1PDAf_kuzgn1d9RFGFPVd-39oPjgGGPv6iqcL_8ijy4oeAzGbHNIgtIjTN_KCbVwuPSX8dQCBRYEyEHYodxbSDXMI", "scheduler_config": {}}', NULL);
INSERT INTO public.jobs VALUES (1, 'job_9Fa1xkXvvI', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3UsT8fwXTDW2GAOeZJop9_y68NX60rrhMl9HnKl4n2XLVVJoisF61KCRxIJlWp-dkSqA7XXZCIbo32siVkhhon0PtuNh6bqWi-peTrN6quaWVg="}', '{}', 1, 1795650860831877, 1795650860831877, 0);
INSERT INTO public.jobs VALUES (2, 'job_8zPukzyLvL', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3UtF0jw4dMomax2zqNvF97toAq1KMR7cJezrHwni8CKONKrQIAzjSEJ3tA44hoCbUYkPBKxg48nxCMrFkDI8xTyWNdZyesfKgozsirMt8rXwgo="}', '{}', 1, 1795650861195194, 1795650861195194, 0);
INSERT INTO public.jobs VALUES (3, 'job_RPpDbAuFik', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3Utz6T-frkMjKwW_CxkfQudnLd4yul1II1EM0uGOZhK3KccrjBA-MD-VZijr7oqXgoDTh5M0CbN7gv9iR1IC-QfTMcneoDuYMan4IV5vGGbSGo="}', '{}', 1, 1795650861838737, 1795650861838737, 0);
INSERT INTO public.jobs VALUES (4, 'job_LXMftYgeK0', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3UuDjFyuXGQ2jGglJGAWtdq66LG9n5OiCz5o9gGLUsxtd0jM4vyr-NZZwG7RCoV478ESYvdg8TE5-ppyeg2oM8TEd81PnKkaTe25n4lLNXI_rQ="}', '{}', 2, 1795650862466945, 1795650862741767, 0);
INSERT INTO public.jobs VALUES (5, 'job_uQUUxSXgeT', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3UvBA5UT1D6P0TBoT7mHZmzt-HDzCDJCOvNjDAo2j_kURFkaZDTO2WU5jffLq-gsx98ifbTo_07qF6CPHYUN2ECThCdCmzxOo0lmyuS5MJdpwA="}', '{}', 2, 1795650863026875, 1795650863477899, 0);
INSERT INTO public.jobs VALUES (6, 'job_AZxl4EnRsy', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3Uv8u5T5ldFxUMnzBJrOl6cqZdqLqKoGzrJSde7ZYap_2u_5bIhrLsCqOomCEqlw48dEOGrx0187WY4u-WixS_8sUUb3decnP9CCZZJiiocsUI="}', '{}', 1, 1795650863878746, 1795650863878746, 0);
INSERT INTO public.jobs VALUES (7, 'job_NZsmEW12bD', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3UwM0yONlbGA6EtkjD6EGu-5_PpSa4O0Ah_Rum5kqsGvirsfkOZJqT4JqB6j5OXwTIxy9JQ2-hfhDg7I69TZ1BD-kA5k0yeEVJFaGj2j2P6cS8="}', '{}', 1, 1795650864498819, 1795650864498819, 0);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrB3UsxkTiKeZJt0Gzvod47tEB9x4HlqptzLiesdntGvHXL8PCcJfRcG00zE3Z-yL3dpkjB-ipvLl5uWqg-hbkEc0jcg==');
INSERT INTO public.leader VALUES (1, 'a controller', 1, 1795650860830786, 0);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UsvrOkg9p5pMYVac-Rx1Lpj7RNsJdB84cOnmlJ4Bre8JCBax_1PB90WuKuMPFlnSsHpFRqgFXRBKyHQsWqq8f_HwQOQ6vPJ7UjaGM-l3f60LYt7Wr5Mr0DEXqjGu3XvDJv"}', '{"team": "a"}', NULL, false, 1795650860831877);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Ut-hyq9vqMQy8Lrlz1AZYU9IwHyfby2emViXLsB4Ps-LRBWm1CbdeUN7rzws4mmIkrNtQsRK6F3ZGJmhEHxWwJCdl44VW50ewDCiGd6MonkGM_lLdEvI71762DblDd-8Y5"}', '{"team": "a"}', NULL, false, 1795650861195194);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Utv_okyE_NMCrJ9BVRVMVDyLc9SJugxkUCEx9_Z6bzNRMbSC7Z1r_eeBaMMm1FC3majGwdCgYYqO8_IuRaaKTG6xtGf617xqAlXYcXGCtSOqTeQsHhCShToJVKCHyCCyN2"}', '{"team": "a"}', NULL, false, 1795650861838737);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UuCW_uAnFZlumCtAu_WbPlSRMGlIrSqwyAv0Qchr6ifopod_dQX6MiqcKHvSnWNFI5VAw4U1TbRi44vsH_yCQXAcf3QMS7r4o1Cxem07oHVyj9qc4NSveG_1Xv7KNnDvAk"}', '{"team": "a"}', NULL, false, 1795650862466945);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Uvmp-8vQA-vcALC4mWJH1CcyYlRhyoQcoFIPB6DLz7vrLd2sU9Op15ne9biQNRqh7IzBglX1xrLvuOnsk1xHUKgKXPTFTOUwsXhdukYS1ChjZex88X6HK4B3AddkTMVG5N"}', '{"team": "a"}', NULL, false, 1795650863026875);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3UvwUxNBeMo86139j8wmQpTB5_nzaNbW6QtUdb0_KkIxu3vfLWAxzDbFD-fT4zyD5pdJ_LC9RIEFZy60Jkgg0z-aOfHp-25tXhNSC6kHld8Tc-hvxVrLtwy7YFr-Q3vTQ0W"}', '{"team": "a"}', NULL, false, 1795650863878746);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3Uw3aFmmw5Xx4b6dgQXNDHFcfrnrl04qYl1noyIcL9uh7kCdepn6m5OzEl3mG24-BEm7m8uq4gkp00o4RHzrOVnMfjx-nWKxF83vsZfxpQAtGDyOp4SK40NtldU_vkIBnEW"}', '{"team": "a"}', NULL, false, 1795650864498819);
INSERT INTO public.udfs VALUES (1, 'udf_inlZDPEIFR', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795650860731005, 1795650860731005);
SELECT pg_catalog.setval('public.connection_profiles_serial_seq', 1, true);
SELECT pg_catalog.setval('public.connection_tables_serial_seq', 1, true);
SELECT pg_catalog.setval('public.job_log_serial_seq', 6, true);
SELECT pg_catalog.setval('public.job_output_serial_seq', 6, true);
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
ALTER TABLE ONLY public.job_numbers
    ADD CONSTRAINT pk_job_numbers PRIMARY KEY (job_id, at);
ALTER TABLE ONLY public.job_output
    ADD CONSTRAINT pk_job_output PRIMARY KEY (serial);
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
CREATE INDEX ix_job_output_job_id ON public.job_output USING btree (job_id);
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
ALTER TABLE ONLY public.job_numbers
    ADD CONSTRAINT fk_job_numbers_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_output
    ADD CONSTRAINT fk_job_output_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_statuses
    ADD CONSTRAINT fk_job_statuses_job_id FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_pipeline_id FOREIGN KEY (pipeline_id) REFERENCES public.pipelines(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT fk_udfs_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
