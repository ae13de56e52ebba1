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
    pending boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    place text,
    restore json,
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
INSERT INTO public.alembic_version VALUES ('v0004');
INSERT INTO public.artifacts VALUES ('abababababababababababababababababababababababababababababababab', 'libplane.so', 'python', 1, 1, NULL);
INSERT INTO public.checkpoints VALUES ('job_wtmjQ3HV7O', 7, 1, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_w7hkH0bSR4', 7, 2, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_7jbm0UOwmd', 7, 3, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_EJVNAd3fxw', 7, 4, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_qvIInXn6lW', 7, 5, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.checkpoints VALUES ('job_hYhU2c73Bj', 7, 6, 'ready', 'scheduled', 1000000, 1500000, '[]', '{}', 0, false);
INSERT INTO public.connection_profiles VALUES (1, 'cp_B8bYXGYFum', 'p', 'sqlite', '', '{"uri": "gAAAAABrB2tPIy0miT7mLQreAZwVTqTFZuizWyVGvDWqCZ9qnMyfcd8szK-Gc4BowZieGgAC_dBH3NpdGdC9198Gb5YNVd3o3g=="}', 1795648335286386, 1795648335286386);
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Created');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Scheduling');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Running');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_CheckpointStopping');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Stopped');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Finished');
INSERT INTO public.connection_table_uses VALUES ('ct_4IAyZ5yySU', 'pl_Failed');
INSERT INTO public.connection_tables VALUES (1, 'ct_4IAyZ5yySU', 't', 't', 'source', 'sqlite', 'cp_B8bYXGYFum', '{}', '{}', 1795648335319313);
INSERT INTO public.job_log VALUES (1, 'jlm_3K0i4U7wEi', 'job_wtmjQ3HV7O', 1795648335574161, 1, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (2, 'jlm_V73Iy8ljbk', 'job_w7hkH0bSR4', 1795648335728432, 2, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (3, 'jlm_l8ZyUsDiWI', 'job_7jbm0UOwmd', 1795648335925975, 3, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (4, 'jlm_PaoMxJMYDF', 'job_EJVNAd3fxw', 1795648336072154, 4, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (5, 'jlm_v5ojVCEGJ9', 'job_qvIInXn6lW', 1795648336238516, 5, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_log VALUES (6, 'jlm_DzfNNcCpFb', 'job_hYhU2c73Bj', 1795648336386207, 6, 'info', 'Running', '', NULL, NULL, NULL);
INSERT INTO public.job_numbers VALUES ('job_wtmjQ3HV7O', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_w7hkH0bSR4', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_7jbm0UOwmd', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_EJVNAd3fxw', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_qvIInXn6lW', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_numbers VALUES ('job_hYhU2c73Bj', 1000000, '{"generation": 3, "rows_in": 0, "rows_out": 0, "dropped": 0, "dead_letters": 0, "nodes": {"0": {"operator": "impulse", "name": "impulse", "subtasks": {"0": {"messages_sent": 0, "bytes_sent": 0, "blocked": 0.0}}}, "1": {"operator": "filesystem", "name": "parts", "subtasks": {"0": {"messages_recv": 0, "bytes_recv": 0}}}}}');
INSERT INTO public.job_output VALUES (1, 'job_wtmjQ3HV7O', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (2, 'job_w7hkH0bSR4', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (3, 'job_7jbm0UOwmd', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (4, 'job_EJVNAd3fxw', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (5, 'job_qvIInXn6lW', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_output VALUES (6, 'job_hYhU2c73Bj', 0, 'preview', 0, 0, '[1]', '[{"x": 1}]');
INSERT INTO public.job_statuses VALUES ('job_SstXt9hz9L', 'Created', 2000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, 0, '{}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_wtmjQ3HV7O', 'Scheduling', 2000000, 1, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tPH2j1ttyJVzF1vfNkXKC6BuD8KB-4MiiMw-jNQXE9rdBk9F5Cuo62wKWcHFBTwZI3cZtTmSjLm3a5ndy2-dLJtP0myvM2aIvgG-8u6BQTvNTL1NLr7tFak0V-OD5a8JUG", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_w7hkH0bSR4', 'Running', 2000000, 2, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tPQh4nJwF_LWNBRKBoHjl863DHX3_UVvBIOceaS-8Csdo5WxfgJFsbkJJYnirqjM6cxy_-UPfvRvFv5RTKsfQZlrlOY-NLEPWlVPCyu2oYcTczOofyY-KJfTjzmgdsc164", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_7jbm0UOwmd', 'CheckpointStopping', 2000000, 3, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tPmsT4uJA6IPmYb3NEaLKVbN7a9R_6L4t_ap2msbkyFyHDpjIPVccZgXKJnp55E5mwf72XS1F03q6VUIEaT8msbkvuO_iwjT57uDvk7LhcdYG5Q3T0CNPL-smrwEGO-QBE", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_EJVNAd3fxw', 'Stopped', 2000000, 4, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tQz1ueV8oizP11fU8fNk2rjpfuKm4ZsnNdA4HkV3wALTgWz0z9FIgBsC0ZOZ-DAqbo0r_ECZfcyC5hZ8Rt4Cm988fj4CdoNcNWS9VH77X5Hxrh07PmkpePtFaDoxOctSHA", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_qvIInXn6lW', 'Finished', 2000000, 5, 'a controller', 1000000, NULL, 6, NULL, NULL, 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tQoMb3R-8X8njpmKbFd0F9OyurEcQTTVFqIZIJA9mSZ9eQpovYHl44cSB47KIRv_GRQpI-gg5qItLiVkD4KBn-MnasG8w8DszawK6ySmduTSlbANJGmmcBeg4DD1IUSdZs", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.job_statuses VALUES ('job_hYhU2c73Bj', 'Failed', 2000000, 6, 'a controller', 1000000, 3000000, 6, 'a row failed', 'user', 1, 0, '{"parallelism": 2, "checkpoint_interval_micros": 10000000, "env_vars": "gAAAAABrB2tQtcKwYlFi1EY4sobcwOEzPukN1kICzv2EmiBe3kIoTq8Ox0Z2n59wrP0zVmmyjhxfz9hSN34R8DCpQmVVN1o4WzXwf-XG0Aap903Gi3ELTDVgx1khNs3hfUh-G4m5oFUK", "scheduler_config": {}}', NULL, 0, 0, 7);
INSERT INTO public.jobs VALUES (1, 'job_SstXt9hz9L', 'pl_Created', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tPyqnXHA8jrjwFpAkp4wL28MlMkQM2vz-amQSUa1GNziVYu9cbJyokSVtOhNrqJYcUQjvSEmDLlsKC4p1D1sg57oagFoBo55Q2b499qY2t8rA="}', '{}', 1, true, 1795648335383531, 1795648335383531, '/nowhere/checkpoints/job_SstXt9hz9L', NULL);
INSERT INTO public.jobs VALUES (2, 'job_wtmjQ3HV7O', 'pl_Scheduling', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tPzpbu12S43Z73AkGGnZddHJ2-hMaDt57mtoBiXVZu2ORc2KfqoNWpnBbPXDw1gQunLQR5pBon_PoKDZCQqiJLP026a5zh5J7o_3ibBEtm2EE="}', '{}', 1, true, 1795648335534589, 1795648335534589, '/nowhere/checkpoints/job_wtmjQ3HV7O', NULL);
INSERT INTO public.jobs VALUES (3, 'job_w7hkH0bSR4', 'pl_Running', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tPie4RPrau_MUiJ4L1ELldEHto32Op--pPqOgAcLxOSvUpm0VJxhmpfyTncoBSej3AYBIhOA312DWr1CwijvzhNUGoTMmGFVs6gK9tcsyLgkY="}', '{}', 1, true, 1795648335682633, 1795648335682633, '/nowhere/checkpoints/job_w7hkH0bSR4', NULL);
INSERT INTO public.jobs VALUES (4, 'job_7jbm0UOwmd', 'pl_CheckpointStopping', 'checkpoint', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tPKS3M1rdiudgv9t1RQxCU4lfKqcgFSuNY92vmnGr4oL_150tUOKLw-SkslOzHMfENNhBG8vTIbdnooqateA7DprW1ItXO3Pv2qYqozH9cTJg="}', '{}', 2, true, 1795648335813183, 1795648335923015, '/nowhere/checkpoints/job_7jbm0UOwmd', NULL);
INSERT INTO public.jobs VALUES (5, 'job_EJVNAd3fxw', 'pl_Stopped', 'immediate', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tQqP2fc28jjiuNdiXYKxjluri4xVX4t75-qLqkqEAGLJ--IT8vDM0FfS8jXgy7u1rrlGS44CU9hzyVAspak-gn8JLqRz4njBAGK0Aenp4Es6s="}', '{}', 2, true, 1795648335987087, 1795648336070944, '/nowhere/checkpoints/job_EJVNAd3fxw', NULL);
INSERT INTO public.jobs VALUES (6, 'job_qvIInXn6lW', 'pl_Finished', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tQ8nwUt_Ae8CJSC6j14sY2Sy63rPW8wlhhxeKLBBuE96yQKrrisi4AK6vyJso8aCxK2jM0Oj-6x_P_RORDwuhi_E8q1TYgEXOwIUXjWWhRoGk="}', '{}', 1, true, 1795648336144986, 1795648336144986, '/nowhere/checkpoints/job_qvIInXn6lW', NULL);
INSERT INTO public.jobs VALUES (7, 'job_hYhU2c73Bj', 'pl_Failed', 'none', 2, 10000000, NULL, 0, 'safe', 0, '{"TOKEN": "gAAAAABrB2tQSgYCFJjwJCD-WoUD57r3ThNZwS2GFGsjbXDZTyrqIW-Zi3apiMuigL8KNpOOTwNlXrRHsH1R6DDfyLl7W5Y8OzJfEMelBel6Wx5nFMMKREk="}', '{}', 1, true, 1795648336339642, 1795648336339642, '/nowhere/checkpoints/job_hYhU2c73Bj', NULL);
INSERT INTO public.key_sample VALUES (1, 'gAAAAABrB2tP1v25_x55qspdCyj21uulaLUV6STuoyuAm2MM93RyaLnAus6fv_6q0Xkc8L7aCYZ5dqXVNqR3AEAWI7IejMQ4LQ==');
INSERT INTO public.leader VALUES (1, 'a controller', 1);
INSERT INTO public.leftovers VALUES ('/nowhere/job_gone');
INSERT INTO public.pipelines VALUES (1, 'pl_Created', 'Created', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tPLnEiIvnqmvxS0SsIl6L1tRi9iRqHvUhW5t2NTKtaVoQD5l9fYuHDec-RdXCIp1CmrPX_0ODIsbGxbTFojW7MoV5ioevuhXnqtPKg5VV_VYDEoAPUJIMWOrqN4Pl7T-lV"}', '{"team": "a"}', NULL, false, 1795648335383531);
INSERT INTO public.pipelines VALUES (2, 'pl_Scheduling', 'Scheduling', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tPCPoDavwv0HvTG9ldImMc0EMSCEwO-0_ccpBz6ixG4jW76hic9OlwJukzcAxrgn9TGHTgUhoQmRWDrS2oRlNNu1nG8ri0E2YLUTCzLY5GCD3dCSMfSInEDvRBipYYRBGr"}', '{"team": "a"}', NULL, false, 1795648335534589);
INSERT INTO public.pipelines VALUES (3, 'pl_Running', 'Running', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tPBGDdAdqgsZOFFHfJm7yGG54JPZ_0vCxdTSoq6jw-llWJT-n_vIjs5_BAhsG3JvC84EDvE2K9nmdXPL98BbghIzmiZEgRBaOIjEqzdvdcmu9jqycyX7X90P1Qv5Edx6Um"}', '{"team": "a"}', NULL, false, 1795648335682633);
INSERT INTO public.pipelines VALUES (4, 'pl_CheckpointStopping', 'CheckpointStopping', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tPEVU_EKh9VYAcbzfvM-OoG1tJqEInQCUKkpz4qo66sNlEnGTzSwxe_-zBDGMpPQTVf4NU8pgrlYbayIwmdXOHkHjrpCGRBCmk96DgG-Pdw8dF1TD6kvNi4o4UvAelXyNK"}', '{"team": "a"}', NULL, false, 1795648335813183);
INSERT INTO public.pipelines VALUES (5, 'pl_Stopped', 'Stopped', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tPVhV8VbvVn9QLt4YQaZ4Ib5VcvZMFSTMW35v0wgUp0FnlIPJW6pB0xZWcqaXrrmmbq6hLIb1sf_iNSYIunBVISckby_vmWomwN_0Zcc6H_Iu8a0xASflBnV91iPqsdKea"}', '{"team": "a"}', NULL, false, 1795648335987087);
INSERT INTO public.pipelines VALUES (6, 'pl_Finished', 'Finished', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tQWIycodvzb8bXVse3_m7Hij1CyHPcSzrWqlgl6d3xf-4HbtdS6LTtPEJ3jrWgVBvk6QxKZImH5CpJ9jYa08Vhv3aRq5twYhxnfzbOtNNCkPNYxF0BFSM-GcqH7_50iBTF"}', '{"team": "a"}', NULL, false, 1795648336144986);
INSERT INTO public.pipelines VALUES (7, 'pl_Failed', 'Failed', 'SELECT 1', '[{"definition": "def f(): ...", "language": "python"}]', '{"nodes": [], "edges": []}', '{"version": 1, "pipeline": {"name": "kept", "source": {"type": "impulse", "rate": 500.0, "rows": 2000, "partitions": null, "start": null, "interval": null}, "sources": {}, "operators": [], "sinks": [{"after": null, "format": "parquet", "compression": null, "row_group_rows": 131072, "columns": null, "null_values": ["", "NA"], "delimiter": null, "quote": "\"", "header": true, "unstructured": false, "timestamps": null, "decimals": "string", "type": "parts", "path": "/nowhere/out", "part_rows": null, "part_bytes": 134217728, "part_seconds": null}], "dead_letters": null, "event_time": null, "parallelism": 1, "checkpoints": null}, "artifacts": {}, "variables": "gAAAAABrB2tQXnbG_EP1eSrMRBm2UQWm_yeG-c5CBcXFyuLdTroMr1-NKVTk-GFjsbmNDLd1FFXRw9OAiAdKKKjvqpWTk8q_30Mcraa2vTTdoFt6EYzui6xb7Az1AOO_Y0fP_wlohi7z"}', '{"team": "a"}', NULL, false, 1795648336339642);
INSERT INTO public.udfs VALUES (1, 'udf_RkO3cZLpdB', '/', 'plane', 'plane', 'python', 'def plane(): ...', NULL, 'abababababababababababababababababababababababababababababababab', 1795648335347405, 1795648335347405);
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
