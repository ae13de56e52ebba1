CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.artifacts (
    sha256 character varying(64) NOT NULL,
    name text NOT NULL,
    language character varying(8) NOT NULL,
    size bigint NOT NULL,
    created_at bigint NOT NULL
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
ALTER TABLE ONLY public.job_output ALTER COLUMN serial SET DEFAULT nextval('public.job_output_serial_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN serial SET DEFAULT nextval('public.jobs_serial_seq'::regclass);
ALTER TABLE ONLY public.pipelines ALTER COLUMN serial SET DEFAULT nextval('public.pipelines_serial_seq'::regclass);
ALTER TABLE ONLY public.udfs ALTER COLUMN serial SET DEFAULT nextval('public.udfs_serial_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v0002');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1);
INSERT INTO public.checkpoints VALUES ('job_23GFSmvxP7', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_ZihA48mW6K', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_pPYUZaHXth', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_zH7yiwkVz3', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_3JtFOTgerw', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.checkpoints VALUES ('job_IJH3gGGfVR', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}');
INSERT INTO public.connection_profiles VALUES (1, 'cp_NH8GP6rkRy', 'p', 'sqlite', '', '{"uri": "gAAAAABrBAxWiG-7XW9o2tDWeppUPw1Iv2wfKucz-Ds7xIqAjAnfBZ36gFovTM7RsS06BR_A3tnkHtkI0QC39Wp9hqq15rsxyQ=="}', 1795427414425717, 1795427414425717);
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_0QmqaJoWJh', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_0QmqaJoWJh', 't', 't', 'source', 'sqlite', 'cp_NH8GP6rkRy', '{}', '{}', 1795427414439416);
INSERT INTO public.job_log VALUES (1, 'jlm_TVi3Lz1O7J', 'job_23GFSmvxP7', 1795427414542180, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_C9tEsSEl02', 'job_ZihA48mW6K', 1795427414617472, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_vHbuQbMx0C', 'job_pPYUZaHXth', 1795427414658464, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_P9ult5Hkz9', 'job_zH7yiwkVz3', 1795427414686945, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_6Tpt6Vp6uw', 'job_3JtFOTgerw', 1795427414707743, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_1sJt3ny6xx', 'job_IJH3gGGfVR', 1795427414724494, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_numbers VALUES ('job_23GFSmvxP7', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_numbers VALUES ('job_ZihA48mW6K', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_numbers VALUES ('job_pPYUZaHXth', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_numbers VALUES ('job_zH7yiwkVz3', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_numbers VALUES ('job_3JtFOTgerw', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_numbers VALUES ('job_IJH3gGGfVR', 1000000, '{"rows_in": 0, "rows_out": 0, "operators": {"0": {"0": {"messages_recv": 0, "messages_sent": 0}}, "1": {"0": {"messages_recv": 0, "messages_sent": 0}}}, "details": []}');
INSERT INTO public.job_output VALUES (1, 'job_23GFSmvxP7', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (2, 'job_ZihA48mW6K', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (3, 'job_pPYUZaHXth', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (4, 'job_zH7yiwkVz3', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (5, 'job_3JtFOTgerw', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (6, 'job_IJH3gGGfVR', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_statuses VALUES ('job_1RVTeqNYs7', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL);
INSERT INTO public.job_statuses VALUES ('job_23GFSmvxP7', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWZKWStLLWVoVI1oMfw6fG2HZy3dQOsPNp51VSxlAAJHOe2L0yqOFv2aOXQtFHxNbdxlsmIPsMqdY63bKva3sP2K8Bc9qOrErgs2wvTVEjy1yuTA53NIkTvlfOTdtlkDjY", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_ZihA48mW6K', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWF_zpE1UPMz3udBCkNCZaphtGSb0a4oi60tUarhghvcfmtta1w-QGG83p1I18tdb451mG-ikCTkkOTW7NNWETEh12MWmTeUfGHXxqBIlP6qFSb_GxwdOgsXCyYwRBeBe4", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_pPYUZaHXth', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWucn_SGKc0nAySIOCwW_Y7hxc9D-zuaYNSR3TSb2BH17DZG0ee8-mIqxwKd6BGT5rf6plDYX1pbWB39dkubURua2zT_jWrOsmqlkPPY0JOSDzMDz_mjwDLjDj9ENKQA8Q", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_zH7yiwkVz3', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWAxCxnhb7nndPHdUAnyJdoT_u5Y6hRe2gQjQ_Ra8thQL8hMITmp-qsSHp8TmXfbAYm7n0mIaESykh7cE_cMWoyQ93LkR_4hVapDm8QNY1v5uKjOZWDkPlZ-74icZCJtVn", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_3JtFOTgerw', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWQl1c1KsiXI0QOiSHXDbIUCs2EN2IkOvTNubwk96WX_B3T2F3cDiE1TM3T2X_y1iWxQHP9Ui-nAODf7w3-gtwGEl3q_3kbJtd2TXhp1fLyq-LW97w_NKhXqSNJkaGWIDp", "scheduler_config": {}}', NULL);
INSERT INTO public.job_statuses VALUES ('job_IJH3gGGfVR', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrBAxWphH05jtdA7HgEoDazNLSlxYE76bzoh1DT0xVBbG2z093Rk1D5usMzqADL_HeBFToOVESlQ6_Hs_qnQu8sH_sNHp0kfngi0kS3fwO_f2RH7kheKVFV2ELcFst8R1tfHfV", "scheduler_config": {}}', NULL);
INSERT INTO public.jobs VALUES (1, 'job_1RVTeqNYs7', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWpRkRQAxK_QgImcUA8d5-ppZuInTSpD6UjHCEehlDOdc8ssfHTWlUupSUDKny-TR9Drw99MUdMjsVyFtNb_jey9On8KcNZ4uaKUNq1X5xuUc="}', '{}', 1, true, 1795427414466629, 1795427414466629);
INSERT INTO public.jobs VALUES (2, 'job_23GFSmvxP7', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxW35Ww9BTjImp2T_37KCZJoHCX0-EERd_kmanRMYEyBLHX5wfEmELc2X8jJgzm7yxh8nsEu65XrMWUb1_rxTCByNaeCJWwaVotHk13HRdu0fk="}', '{}', 1, true, 1795427414523618, 1795427414523618);
INSERT INTO public.jobs VALUES (3, 'job_ZihA48mW6K', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWe6GaW4l2bP_g-T2VQpv9Qs871QqRw0WV8YFAZoHmJ6dZpxm2jyEzV2bqAf1oVGDkTVo42Ln5GmaxhXukd154NINXPsRzC3NtDLMijDU2EEo="}', '{}', 1, true, 1795427414598011, 1795427414598011);
INSERT INTO public.jobs VALUES (4, 'job_pPYUZaHXth', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWY0RSzy8foelKWaQYc-vG2NEY604APqbFE4qFdgxwlknsSfihHkIgFHHhkjOiTPsYJtlNUwXZ-EcMDxuP8FARD3skWDCvjehZ9E6SIjiwMrA="}', '{}', 2, true, 1795427414639118, 1795427414657431);
INSERT INTO public.jobs VALUES (5, 'job_zH7yiwkVz3', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWSGT-BIggajlRGtTaktwYs0Y1qQoSNZndxjtvSMltIGHCzl6jukCZBI_FKw5ayESKBhTfj4RGkMzNNYVwTqL2v7tBDO3LH_29b5mTuhbHeco="}', '{}', 2, true, 1795427414671541, 1795427414682992);
INSERT INTO public.jobs VALUES (6, 'job_3JtFOTgerw', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWQdDJYt4uBx0kh4soOWcXB1wcuLMMpUmza8w63iUKq_y5xAYp8217PY1VC5_0zs1FfH28S-lv1HfLjEK8H-adZhJopmE98ECOQN6np1BGa5Q="}', '{}', 1, true, 1795427414703335, 1795427414703335);
INSERT INTO public.jobs VALUES (7, 'job_IJH3gGGfVR', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrBAxWKtA6WuvQV0DZRcgDFMN1r6VwoZBi5iVwodvQkmFc1bjLcD6PKiU6gVX7upzdNkGVvXU0udp9GPgGLub0CPyqVMvLUGwq_s7qqvHJGPvlUDk="}', '{}', 1, true, 1795427414715316, 1795427414715316);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrBAxWkUDKgQ0jGXoBcqXOefRqTaOoqHyiZSNGCBQXj40nvPjAndDDBM32P9OWBarfnCzzFal1a6h7kkGJO4gVCSC-Mg==');
INSERT INTO public.leader VALUES (1, 'a controller', 1);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWW-w64krWsymy7Wz5kEisnowVnWbBldUFiKqZYkZf60uHhi0d3aFPHU0wAompvsVuOj6hyd6wNPjCwC7FVgE7qGESoIQ94PWoOxc1D1x26EmtrVEXQdx18k2EgHRVh8sx"}', '{"team": "a"}', NULL, false, 1795427414466629);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWH-vMYvEZXhwK3GC7NkYRiwPxQpfNRrhdbYV5Hrkw0LpDd7HQRzgFL9BpgeHvL1bCoMLLbVViaSfncrVbqwQJ7G1UjCAVcXw4Vq0quXEZzje8rc31WMR6oWSgPXPBhAVI"}', '{"team": "a"}', NULL, false, 1795427414523618);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWGWV5t0jMlf511EGxHrxjX3EsC6rn7_RKsCjtPMWpU4zAGr4pmiVyEBUjNkIf5K7aj3VKg8zu5ckJHjb2ahE61kpBl9xAZhSQ0bEbL_HE7vcjOHTYBrbKY1u4L_Ikys_Y"}', '{"team": "a"}', NULL, false, 1795427414598011);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWSnFJlntK4HARFWQy-arrygA7Vb3VP3vSfJ2jE3CLQ52_bU9bvgklxZNFWhKq-Bqv6QPDwGDifyVzosVV72MobM-ZkiR0Z0ckhBhVsgaKeCKycjJMininUuJiNDG_N3bB"}', '{"team": "a"}', NULL, false, 1795427414639118);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWTP0SlZQkrqKchUAVw6AXNGwJg13gsxVjMm6l7N1VFOB8A47OsNMm9l4pifKOytwLsrWqDIyHHi3mHCracSx-gagD50qcxPMvr2vf4UJVdDBH509RRoSl12g9TpQDwvww"}', '{"team": "a"}', NULL, false, 1795427414671541);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWKe9DT7paWK9GyaEFKjDr0Dv7-pcX2OoGikjpM6QdnDTnfmOUNR9zBsr71mRE656u4M_ppOh4sJCd78yC4CyNxS15aKOFJsmt3JdYgpt12OW6ci6-qdaU0q79nrWOgy4r"}', '{"team": "a"}', NULL, false, 1795427414703335);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrBAxWLaD0cMSoyGKcK0VH1xigph1CnsDuJnkcTdniKKpEfQ4G8ipXVD0Q0gYQG9h28AKt4QHeknsA4sABgMCrLgZcWXYhyHWJn3HWoQ3BiiGBCGrCaiQ7D008lttBSS8UAPP4"}', '{"team": "a"}', NULL, false, 1795427414715316);
INSERT INTO public.udfs VALUES (1, 'udf_W47WqJuwzb', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795427414449080, 1795427414449080);
SELECT pg_catalog.setval('public.connection_profiles_serial_seq', 1, true);
SELECT pg_catalog.setval('public.connection_tables_serial_seq', 1, true);
SELECT pg_catalog.setval('public.job_log_serial_seq', 6, true);
SELECT pg_catalog.setval('public.job_output_serial_seq', 6, true);
SELECT pg_catalog.setval('public.jobs_serial_seq', 7, true);
SELECT pg_catalog.setval('public.pipelines_serial_seq', 7, true);
SELECT pg_catalog.setval('public.udfs_serial_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
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
CREATE INDEX ix_connection_table_uses_pipeline_id ON public.connection_table_uses USING btree (pipeline_id);
CREATE INDEX ix_connection_tables_profile_id ON public.connection_tables USING btree (profile_id);
CREATE INDEX ix_job_log_job_id ON public.job_log USING btree (job_id);
CREATE INDEX ix_job_output_job_id ON public.job_output USING btree (job_id);
CREATE INDEX ix_job_statuses_state ON public.job_statuses USING btree (state);
CREATE INDEX ix_jobs_pending ON public.jobs USING btree (pending);
CREATE INDEX ix_pipelines_is_preview ON public.pipelines USING btree (is_preview);
CREATE INDEX ix_udfs_artifact ON public.udfs USING btree (artifact);
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
