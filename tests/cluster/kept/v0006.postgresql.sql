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
    pending boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
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
    term integer NOT NULL
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
INSERT INTO public.checkpoints VALUES ('job_k5IAM32It7', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_UiXC5gFrqU', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_QgQ5vxx6pU', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_mNeNrTIyck', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_l9YPg1yZlO', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_qjaVNUdeZM', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.connection_profiles VALUES (1, 'cp_S7GTfk37ut', 'p', 'sqlite', '', '{"uri": "gAAAAABrB3F77ESMAT7PsZ2SJfMo0Ya5wCnPWZtf-KyvVYhfSTEhEfG4HvmBE-7nuZEjkIAvwtP40eZPqV4x1H4r7WfG-9l7zg=="}', 1795649915668746, 1795649915668746);
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_R7NEOfAcbe', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_R7NEOfAcbe', 't', 't', 'source', 'sqlite', 'cp_S7GTfk37ut', '{}', '{}', 1795649915709117);
INSERT INTO public.job_log VALUES (1, 'jlm_tqDbUk5NTh', 'job_k5IAM32It7', 1795649915935880, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_3ZciENE9u7', 'job_UiXC5gFrqU', 1795649916090200, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_TpTq6Z4VIb', 'job_QgQ5vxx6pU', 1795649916262567, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_l89pUXgLFs', 'job_mNeNrTIyck', 1795649916402192, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_eTBnoL3MXT', 'job_l9YPg1yZlO', 1795649916503818, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_LjgIePJfAi', 'job_qjaVNUdeZM', 1795649916610060, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_statuses VALUES ('job_bpDdPrzmsn', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL);
INSERT INTO public.job_statuses VALUES ('job_k5IAM32It7', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F8mqRfYBof2ya-FYFa88QP8x8x7Imf_fPoLp1F7BverKMU9g3v_gvBwxw8GlB4jvb2StHx-Am39yF5ys_YW9tged-o0SvTY6SsC2Ar_-F2aIwmCj9RsC4Y8rxUG3zTz3Be"}', NULL);
INSERT INTO public.job_statuses VALUES ('job_UiXC5gFrqU', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F84IZCvBhyZx_SmZoOpjtaQ35kEQYaSXztvy2lDKgh7egaQk7m4IaryEBPfBR6O-kjekmta0Y-t9mxUMdaWLe6Q2G27P7T85PalZK5zRFHUJL2UobDf4l6x72hVSxCinyI"}', NULL);
INSERT INTO public.job_statuses VALUES ('job_QgQ5vxx6pU', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F8o1qaRaql9Fn5VEqr5_vc_3-8bVMeb4deB_F8b7ijMhFQHzrpcuh6LYO9uSoyATf_zf0i27ExKFva-KkTgs4CUNy6Z25sknXliMQovEKAtUPT0KDlq5b99yv2H0VPLUHT"}', NULL);
INSERT INTO public.job_statuses VALUES ('job_mNeNrTIyck', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F8PL6FU99KrFB3TIMp-roLvplxUprcXHltlJq5U_75oK5YBzmu8XFqH8rP29lNaZKNwgDEeDsKCiyMRdF1ioAQIySIZpWnxRRc9g2-sXxQM8KXUR8r_sNSSxrTulp-gVzO"}', NULL);
INSERT INTO public.job_statuses VALUES ('job_l9YPg1yZlO', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F8kRI5BMTOpAybE7d0PsaLZZMi4LEnGscV6No4GGudeypWWOwlZSyScsezBjN3gk6PPkIIIa7zVejfbgUUDQS8M667JM0hG4sD56gL6FSzO-Hkt9yyrdEOeL4Sd1S8Y4nb"}', NULL);
INSERT INTO public.job_statuses VALUES ('job_qjaVNUdeZM', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB3F8UP5VnBUeAH6qTbar4AJ8Cvymm3BM6RZcDRblXhWgrnVhXd8EWwryA7tKzYHhz9j8tNx8T2BPxkL9l63DLnrWpor7GuIXSsYE0cziXi321l_2-Tc4lY7f4zox_y6jhTuC"}', NULL);
INSERT INTO public.jobs VALUES (1, 'job_bpDdPrzmsn', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F74SymiRn8kHPqkKjPI9tWr0K4y0qZEl3q5n1UJwLroQiU6qpYCBV5T_hPByqUGCAQuX3GyYVxlq3AODjzBo7f0WNYDHEBSC3v4jpV6Iit3Ik="}', '{}', 1, true, 1795649915769767, 1795649915769767);
INSERT INTO public.jobs VALUES (2, 'job_k5IAM32It7', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F73bbipj8vvIWYswVc6xroLlhRU1h53F5dnaumQWU6BFHmzjoKOFg6VmiBZyu-2ipWS5wRfblf1ZtmMxpS1500kr5Fokf-PXYWYUwH9HNcy6M="}', '{}', 1, true, 1795649915890838, 1795649915890838);
INSERT INTO public.jobs VALUES (3, 'job_UiXC5gFrqU', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F8OdBdC9IwGsqRkMbObwEeAE5VIH3nhmkX3R3bf5s1sw98aCzofjRe6in0jstWWeK4TP7TMHabNmqwBWlJQ1shgC3frJbSMZaJ_AxSCu_Z9uk="}', '{}', 1, true, 1795649916033621, 1795649916033621);
INSERT INTO public.jobs VALUES (4, 'job_QgQ5vxx6pU', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F8UzztyEyKWcUkAKh-AIoP7DcTemLkyOTpIH-BgN2KXhypUw49Wc0L3k7q86BemrcYSGRBfYGYz_cEyDrGxpZhiGj23N0fpfBaizU4gHPkEO4="}', '{}', 2, true, 1795649916139158, 1795649916257805);
INSERT INTO public.jobs VALUES (5, 'job_mNeNrTIyck', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F8PY6QjhmxQG9XV42gWn4_B3wl6QU3xAAuru2vi5UEgs5-sIAZ3KydfvLD8zzr8-WrLff4LvBoPzOI8tDuhpqs82jErHtIBty2pIJ1P-Xgh5U="}', '{}', 2, true, 1795649916298924, 1795649916397785);
INSERT INTO public.jobs VALUES (6, 'job_l9YPg1yZlO', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F8oWs7qGE_rDLigAzYTZ7XXV1_0GT2ol1k39nFFQF7XE3M6_3wKsVeUrWZWmTdxYDVeLRIXwUoRR6GsjThfktBOr4S3Lbq4qN5BbSCTNLVS_Q="}', '{}', 1, true, 1795649916438159, 1795649916438159);
INSERT INTO public.jobs VALUES (7, 'job_qjaVNUdeZM', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB3F8GxeU1ktETeZ2cE8Gh5GTTT-qYN9wvYzVoI5QbmVDsoa_rFJLeEjbzHW6iO6b-NEBStgroeDeADc7-9UKY0r6ATHqNW_mvjsIWl6jzMluXMc="}', '{}', 1, true, 1795649916542499, 1795649916542499);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrB3F7ZtlOUE9dh5mz1-p-OlmczX4yKsGp9o6Z5Gi4gLEXkcuZcxmee4Sa1jPcS5h54S4dh3K3duFlkP-A70uTiK2hMg==');
INSERT INTO public.leader VALUES (1, 'a controller', 1);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F7CURwPvTcifuekbnb9Je2PQcKwQZ0DbfQ-NJ0NLUkd558_KfTkpHlflykPIAGGdeBAuUMFKNFZs9ECW9A6_hNWSkukwJ8cwSj7K3IsWTDGtA5CiOgh_zSA6vJFNekdG19"}', '{"team": "a"}', NULL, false, 1795649915769767);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F7Zi06gg3LSQK69yAkOVNZZAumPTdmJgJONfwYzIeoAgsIubYyBcBZ6H7yXRkvwrxRPQd0bApxgGUSl0Nv7V_-3IFvF2HBLqMyrIVaW3_gGc8vTVlfH_ZTQJ4zPdZmyN9T"}', '{"team": "a"}', NULL, false, 1795649915890838);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F8N1BnhrFSACb3GNocnKq0AAeCXeVCAIoPm9qs7AkGa9_6JQcmmGX81ML4HrgqNtlieaQUFSyBc23lPgxyGyK_oz-STXrr6k_tRIunMI7Ifw7wn1xvwddSKyzaSQMJVY0F"}', '{"team": "a"}', NULL, false, 1795649916033621);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F8lpr-G_kwlwLUPZM8sa7lQn8bFriC_6wASE_si0Xya3XYKY1_YNe2rsGJOOSITO4tbcoYcYr3ayy_v-i9hdYMjkEhFukHO6ZW-tn2Bn_w6j3aaOMel4_HyI4zhFzODvbj"}', '{"team": "a"}', NULL, false, 1795649916139158);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F8onksbWhZvGfL2gjvLE6qIJvTkRj3hg1lEiMoy4e_vywk-O_1qFNXP5MQI3mL0VBn_SgzvMJ4exkkNFCYRP6wOSxclFS3TYG2867hJaRweDjlTr6kZCjR9x61-oBH5Iuy"}', '{"team": "a"}', NULL, false, 1795649916298924);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F8kGCIUlTjx0r3JsvRv6NTAUDdcdDsofTLARb3gb4_hIGEb78ExOaMQykJ5fvoofntF_50WYd2K-rE8gTfaRqwb0morOUPMOZgf_DzcONGhP_YmX9f9EWlKR--2TRvuIN2"}', '{"team": "a"}', NULL, false, 1795649916438159);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB3F8StSk-N-_yYVCyOBZkHz-1nKf7Vst676BejZkVzEvvekTI67gOnoQpEJLGkiGr_nkg1D0MMScv-p922-xXWqOPMJLDsazsG2dglceb6WmnyTl3Jo6WD_JzKweuybZX7iQ"}', '{"team": "a"}', NULL, false, 1795649916542499);
INSERT INTO public.udfs VALUES (1, 'udf_ewd7ugMWKf', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795649915754616, 1795649915754616);
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
CREATE INDEX ix_jobs_pending ON public.jobs USING btree (pending);
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
