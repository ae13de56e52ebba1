SELECT id FROM public.flights
-- refused 1:16: tables have no schemas here: write the name alone
