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
CREATE TABLE public.udf_versions (
    udf_id character varying(200) NOT NULL,
    number integer NOT NULL,
    language character varying(8) NOT NULL,
    definition text NOT NULL,
    created_at bigint NOT NULL
);
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
INSERT INTO public.alembic_version VALUES ('v0007');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_Zz8qGDekVW', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_z4yWtgkP7M', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_lZgrtTSrz0', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_ohRefnFblZ', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_VIcbQjB9MK', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_aVO4xoRwuH', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.connection_profiles VALUES (1, 'cp_c8UTXHEJFQ', 'p', 'sqlite', '', '{"uri": "gAAAAABrCjtlk8xftN0fpM8oehPRUFjHKpo5eFJk_WaI6ZOHpxx2MPjCi3PD8g2AUmZxxYFFEIDgPdWkcRRkTNgwEtIy_rHCtw=="}', 1795832677320963, 1795832677320963);
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_Q2U27wRqpj', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_Q2U27wRqpj', 't', 't', 'source', 'sqlite', 'cp_c8UTXHEJFQ', '{}', '{}', 1795832677330227);
INSERT INTO public.job_log VALUES (1, 'jlm_Cd0nKeifmn', 'job_Zz8qGDekVW', 1795832677410260, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_9xUoeze7ar', 'job_z4yWtgkP7M', 1795832677447925, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_I1fSC5eSMK', 'job_lZgrtTSrz0', 1795832677501390, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_SHYQjSkKtv', 'job_ohRefnFblZ', 1795832677545184, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_Qmn9tzShfi', 'job_VIcbQjB9MK', 1795832677562168, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_lDn7gw5Ar0', 'job_aVO4xoRwuH', 1795832677572577, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_statuses VALUES ('job_YyG9UeX3Vv', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_Zz8qGDekVW', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtlM8_kC71ISe_kedJ4rEAvJB_T2FmiSPwKKLvhYjx_J0SdfRQ8-rIc_eXweWQ_aQRc0KKl_19jocZQQZFUYE7umeFqkieP2XD2ar5f1T8VZHMoQIJPLpWwskh5O3d8ok76"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_z4yWtgkP7M', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtlWMKJF49cOAOxImYye20SYyVuMxTxLc7gfop1k7Iuj-XJ6HtJc6NbKTJgPP0kpndZUo0LSf07KqwT-8H1kSXyVpIi124PvtD5ig17BNzxbZlQeLk4yIyMGauEezA2-RV6"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_lZgrtTSrz0', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtltIVHz-AdlIsJVGwovxOWlmO7fo3dEnBbTrhV5hcWstDcDdtacTu1A2Zpv_i3rPi1lUpBSj_ovRoDC0jKTauuOJdu64fyWzOxKLPQccIHBYwgWdui1YPut8FohFKciNUs"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_ohRefnFblZ', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtlMIz8VkrwI9XclLH-nd3VjpwoXc4XC8Eq3ibGpw_nLXP8vgZXIOTACthAQX0xqoWmKMgGFYggF5LAQFMUJn2LrkhUTGoyKbjRpvNQtKiLR5CW_2OKyMdVfPjwCbAOXBwc"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_VIcbQjB9MK', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtlcDqKCZgGyU8LPPrupnggH9QYwmEpYeWI26hGsN72ksH-IITRlU2GXtSa3j9Dvq6kC6AvsM8dnNIZE31q_nbxxawIHu7UW23xmcj96b5zqq9u8t2OnFRYDrsxtVdcw3PI"}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_aVO4xoRwuH', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrCjtly_Xsc1ahLcHSPgNRsr-ZvIjrPg3e_I1z0lNWMCbcsrw7rlfS9Cwr9E5kBb5CKJGevzzHwyuYSRrqI4jVqbgl5tO5QJpLoMPXr_8roLPQw_taz3vo7F609bNEUqowhMqJ"}', NULL, 0, 0, 7);
INSERT INTO public.jobs VALUES (1, 'job_YyG9UeX3Vv', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtlgknrgqxwB-NSZatKlMB_OxV8BJS1tNQpNewIRQBltuZTf3u91iXJ-AbKVFI9nkQOp0gDOBQltJT8OUtEScDiqn1iS1ByH156xcCQwkRbERw="}', '{}', 1, 1795832677358145, 1795832677358145, '/nowhere/checkpoints/job_YyG9UeX3Vv', NULL, 0);
INSERT INTO public.jobs VALUES (2, 'job_Zz8qGDekVW', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtloioKu9p44jT5wU9LeS4BdSn6OLdlTEcF6DrOiK4DZHHR9TFjt_9Ib69akpeRAIBftxjMgmeU-pfaxZvNes7ePzo26JJhaaZw15hCHi7yCzo="}', '{}', 1, 1795832677394170, 1795832677394170, '/nowhere/checkpoints/job_Zz8qGDekVW', NULL, 0);
INSERT INTO public.jobs VALUES (3, 'job_z4yWtgkP7M', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtlQ4XPZUhh0n8d-3y8XamsdperE-Rs513wubrn7WmRqX0a8siVggbeifalRSlk03vFjEwKhhERvO9HmavkLa1xa-XW9FPK6zmhBQDmqg0joR0="}', '{}', 1, 1795832677433111, 1795832677433111, '/nowhere/checkpoints/job_z4yWtgkP7M', NULL, 0);
INSERT INTO public.jobs VALUES (4, 'job_lZgrtTSrz0', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtleewiB3AvC_3zc6EKeMMo5H5-Ukbj1QRRCk6tZgiHPntcp82Gf8a1ESspn925F7JUlyhvpDiOwA85NeAE4rDqmjdjUOMQSWZafqpiMK5we1E="}', '{}', 2, 1795832677458794, 1795832677499792, '/nowhere/checkpoints/job_lZgrtTSrz0', NULL, 0);
INSERT INTO public.jobs VALUES (5, 'job_ohRefnFblZ', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtlaH_nlIGAlsDgYz5V2fuGh6IPaj6iL26ak6HW_557kr_EgToCioQPhzsy-GyRMgOfCc0ggWwl7rpdZMr4IXvxn-rr6rFi6emGY-_dZzAiEUo="}', '{}', 2, 1795832677516556, 1795832677544185, '/nowhere/checkpoints/job_ohRefnFblZ', NULL, 0);
INSERT INTO public.jobs VALUES (6, 'job_VIcbQjB9MK', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtlPWNPbuDclc9r_Yo77iV3LF5S7cV0v_zuCT-JqcWEHdhR8mXdpfv7I33rqKyrm0av2l3cVWFLsPQqpLr40lWdXEUinr9g7HQuHTIeBLtbXkk="}', '{}', 1, 1795832677556142, 1795832677556142, '/nowhere/checkpoints/job_VIcbQjB9MK', NULL, 0);
INSERT INTO public.jobs VALUES (7, 'job_aVO4xoRwuH', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrCjtllK49_WPEZXCSjywGRpQKRYpuIJ2fYpObab35yEawaUIJdyYwcyqldJd6vZe7Y7xz4SlizND3sBUmqR48_OuPUxxOb8wgqv1fVjLsS1mbXKM="}', '{}', 1, 1795832677566153, 1795832677566153, '/nowhere/checkpoints/job_aVO4xoRwuH', NULL, 0);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrCjtlyYYyMZJsLTj6HHdPMgchDuyp2ix3dnVz0LS9h-MjH2GvgE4YHBuTXj1lvRT-IzFIR8sv8tMJFjCPIhiW5KKdPg==');
INSERT INTO public.leader VALUES (1, 'a controller', 1, 1795832677357471, 0);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtleLqEFMqovBk-fGoteRGEg-AIrwASsXJWq2Sbhef07HZ9F8gWxStoUr-bm4E4XRc28Hr1NjGbV1ivkoPK_4sWh12iYMMoS1IzwWrmNFUoewvpKcEd77mxIdxXIOkD1eII"}', '{"team": "a"}', NULL, false, 1795832677358145);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtlkRPnXDhV1Gh3PRHsdFwrdAz4LL9p-CKk3A3cLtgjYc8rbfLFmk6LoFGP-mQ5ceao9__AA55Z6UKPMLgDQwqtnuKWWwHJgT6bo83HGAb4Z9QxHZZxvTQImyzYExTo4n1u"}', '{"team": "a"}', NULL, false, 1795832677394170);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtl9SQieUN3xzga6wEYKuSFHOvdqmIiJSeqgZowoKBvyPUtu2NwjUo7kkvVyykPUpz7EMAmCJb1dhiIGeCkmUgOP9YA3QwA8w1HDjGW1p-fCCSG_G34rC5xXLR64ZtgnrWK"}', '{"team": "a"}', NULL, false, 1795832677433111);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtl8jDoGwU-1LoNNJ4CZX0k1jH_3vweiiLWG264Fr6IxcHckMiEcMytY21PPZIHGmCwZfzK4uNpO9wf53iQJKRoLTX4arkNEm74_8htAQ8lNtbv3RVfC4LyBbfWo_WA0xYy"}', '{"team": "a"}', NULL, false, 1795832677458794);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtlhU6ouBiAm7Sq7MCFJUJ7-9ebQUzaQuVkwRqOox1pRvhYhW0EyXVzRyUGVKW1uQMOFK6AjZiWo9JCQXHu2t2SvQ8kJChbdgXPcpa8kUCUfxP1zOJpxUdAUpLgjlEXRXMV"}', '{"team": "a"}', NULL, false, 1795832677516556);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtlW6Z4C7PRwLOhrqVH7e42n1wld1oXxWIyAjKQQN1vyXhXSWbv364b4LNNJSkBPnOE6JT9JnFfkQkz_PYQY511KGzdjYH7mLPyYMoMD5Jo5vr9FHvchTVP_G9FDleX8QRb"}', '{"team": "a"}', NULL, false, 1795832677556142);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrCjtl9MRSoSnxAwjgSTFj4LiB89B4QQDlnji8eZELBxXyDHnHPCRvfOZREEVnuD097pv1PduWiPnyE3twqZ_4c7fMzS91RQCZDmeMWaIcSTDQ3lFCPsPXueRoFhSzyN1l6n6r"}', '{"team": "a"}', NULL, false, 1795832677566153);
INSERT INTO public.udf_versions VALUES ('udf_Q1VsaF2skF', 1, 'python', 'def plane(): ...', 1795832677339869);
INSERT INTO public.udfs VALUES (1, 'udf_Q1VsaF2skF', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795832677339869, 1795832677339869);
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
ALTER TABLE ONLY public.udf_versions
    ADD CONSTRAINT pk_udf_versions PRIMARY KEY (udf_id, number);
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
ALTER TABLE ONLY public.udf_versions
    ADD CONSTRAINT fk_udf_versions_udf_id FOREIGN KEY (udf_id) REFERENCES public.udfs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.udfs
    ADD CONSTRAINT fk_udfs_artifact FOREIGN KEY (artifact) REFERENCES public.artifacts(sha256) ON DELETE RESTRICT;
