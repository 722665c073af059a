BEGIN TRANSACTION;
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	user_name TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id)
);
CREATE TABLE experiments (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	status TEXT NOT NULL, 
	stop_requested BOOLEAN NOT NULL, 
	owner_host TEXT, 
	owner_pid INTEGER, 
	owner_started TEXT, 
	seen_at DOUBLE, 
	unattended BOOLEAN NOT NULL, 
	author TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	request_key TEXT, 
	result TEXT, 
	settings TEXT NOT NULL, 
	source TEXT, 
	CONSTRAINT uq_experiments_uid UNIQUE (uid), 
	CONSTRAINT uq_experiments_author_request_key UNIQUE (author, request_key)
);
INSERT INTO "experiments" VALUES(1,'fb84bc6e25fa4f23815df06ec2b052d7','sh',1.79496361596833682063e+09,'finished',0,NULL,NULL,NULL,1.79496361826811981206e+09,0,'',0,NULL,'{"ending":"the budget of 14 runs is spent, 6 of them kept for verification","verdict":"no improvement found: the default is the best of all configurations tried","improved":false,"best":{"x":1,"mode":"a"},"value":101.0,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.1437332060004337}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":9,"step":1,"scale":"linear","default":1,"unit":""},{"kind":"choice","name":"mode","values":["a","b"],"default":"a","ordered":false}],"constraints":[]},"command":{"argv":["sh","-c","echo $((100 + {x} * {x})); : {mode}"],"environment":{},"shell":false},"cwd":"/home/ada","measure":"regex:(\\d+)","goal":"minimize","optimizer":"auto","options":{},"seed":1,"budget":14,"time_limit_s":null,"timeout_s":null,"workers":1,"resample":"auto","estimator":"auto","prune":null,"stop":[],"verify_pairs":null,"sentinels":0,"further":[],"first":[]}',NULL);
INSERT INTO "experiments" VALUES(2,'01688eac42514451956ff95c1c864540','sh',1.79496362302304315571e+09,'finished',0,NULL,NULL,NULL,1.79496362508840489385e+09,0,'',0,NULL,'{"ending":"every configuration has been tried","verdict":"9 configurations on the Pareto front, 0 of them better than the default in every objective (not verified)","improved":false,"best":{"x":1},"value":1.0,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.14303807599981155}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":9,"step":1,"scale":"linear","default":1,"unit":""}],"constraints":[]},"command":{"argv":["sh","-c","echo $((10 + {x})) ; echo size={x}"],"environment":{},"shell":false},"cwd":"/home/ada","measure":"regex:(\\d+)","goal":"minimize","optimizer":"auto","options":{},"seed":2,"budget":12,"time_limit_s":null,"timeout_s":null,"workers":1,"resample":"auto","estimator":"auto","prune":null,"stop":[],"verify_pairs":null,"sentinels":0,"further":[{"measure":"regex:size=(\\d+)","goal":"maximize"}],"first":[]}',NULL);
INSERT INTO "experiments" VALUES(3,'0831d59b63c742649cb077fcdbc6060c','sh',1.79496362990425062182e+09,'finished',0,NULL,NULL,NULL,1.7949636299507665634e+09,0,'',0,NULL,'{"ending":"the budget of 12 runs is spent, 6 of them kept for verification","verdict":"no improvement found: the default is the best of all configurations tried","improved":false,"best":{"x":0,"y":0},"value":1.0,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.08185202499953448}','{"space":{"parameters":[{"kind":"integer","name":"x","low":0,"high":9,"step":1,"scale":"linear","default":0,"unit":""},{"kind":"integer","name":"y","low":0,"high":9,"step":1,"scale":"linear","default":0,"unit":""}],"constraints":["x + y <= 12"]},"command":{"argv":["sh","-c","test {x} -ne 3 && echo $(( {x} + {y} + 1))"],"environment":{},"shell":false},"cwd":"/home/ada","measure":"regex:(\\d+)","goal":"minimize","optimizer":"auto","options":{},"seed":3,"budget":12,"time_limit_s":null,"timeout_s":null,"workers":1,"resample":"static:2","estimator":"auto","prune":null,"stop":["no improvement over 4"],"verify_pairs":null,"sentinels":0,"further":[],"first":[]}',NULL);
INSERT INTO "experiments" VALUES(4,'c062a32e3b1f4f759bf2effad3f5fb4d','block size of dd',1.79496363473281240466e+09,'finished',0,NULL,NULL,NULL,1.79496363790447950366e+09,0,'',0,NULL,'{"ending":"the budget of 6 runs is spent","verdict":"not verified: the best value may be luck","improved":false,"best":{"bs":524288},"value":0.07629770289531734,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":1.7480372380000517}','{"space":{"parameters":[{"kind":"integer","name":"bs","low":512,"high":4194304,"step":2,"scale":"log","default":512,"unit":""}],"constraints":[]},"command":{"component":{"description":"copies 64 MB of zeros to a file","header":"rm -f /tmp/luthier-dd.out; sync","command":"dd if=/dev/zero of=/tmp/luthier-dd.out iflag=count_bytes","parameters":{"bs":{"type":"int","default":512,"cmd_var":true},"count":{"type":"int","default":64,"cmd_var":true,"suffix":"M"}}},"component_name":"dd","application":"","name":"script","where":"local"},"cwd":"/home/ada","measure":"wall","goal":"minimize","optimizer":"auto","options":{},"seed":0,"budget":6,"time_limit_s":null,"timeout_s":null,"workers":1,"resample":"auto","estimator":"auto","prune":null,"stop":[],"verify_pairs":null,"sentinels":0,"further":[],"first":[]}',NULL);
INSERT INTO "experiments" VALUES(5,'4133151e45884aa8be4b4af888ec8dbb','sh',1.79496366406365633009e+09,'stopped',0,NULL,NULL,NULL,1.79496366407923269277e+09,0,'',0,NULL,'{"ending":null,"verdict":"not verified: the best value may be luck","improved":false,"best":{"x":10},"value":0.02744477900023412,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.4267168260003018}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":30,"step":1,"scale":"linear","default":30,"unit":""}],"constraints":[]},"command":{"argv":["sh","-c","sleep 0.0{x}"],"environment":{},"shell":false},"cwd":"/home/ada","measure":"wall","goal":"minimize","optimizer":"auto","options":{},"seed":5,"budget":60,"time_limit_s":null,"timeout_s":null,"workers":1,"resample":"auto","estimator":"auto","prune":null,"stop":[],"verify_pairs":null,"sentinels":0,"further":[],"first":[]}',NULL);
CREATE TABLE luthier_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT luthier_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "luthier_version" VALUES('0002');
CREATE TABLE passes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	digest TEXT NOT NULL, 
	user_name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	label TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	used_at DOUBLE, 
	CONSTRAINT uq_passes_digest UNIQUE (digest)
);
CREATE TABLE runs (
	experiment_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	purpose TEXT NOT NULL, 
	config TEXT NOT NULL, 
	submitted_at DOUBLE NOT NULL, 
	submit_order INTEGER NOT NULL, 
	finish_order INTEGER, 
	started_at DOUBLE, 
	duration_s DOUBLE, 
	outcome TEXT, 
	reason TEXT, 
	value DOUBLE, 
	others TEXT, 
	at_least DOUBLE, 
	metrics TEXT, 
	logs TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (experiment_id, number), 
	CONSTRAINT fk_runs_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id), 
	CONSTRAINT uq_runs_experiment_id_submit_order UNIQUE (experiment_id, submit_order), 
	CONSTRAINT uq_runs_experiment_id_finish_order UNIQUE (experiment_id, finish_order)
);
INSERT INTO "runs" VALUES(1,0,0,'default','{"x":1,"mode":"a"}',1.79496361600843143467e+09,0,1,1.79496361610774946213e+09,2.3794069999894418288e-02,'completed',NULL,101.0,NULL,NULL,'{"wall_s":0.02379406999989442,"user_s":0.0,"system_s":0.005939,"peak_memory_bytes":7012352.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-0');
INSERT INTO "runs" VALUES(1,1,1,'search','{"x":7,"mode":"b"}',1.79496361615464878084e+09,2,3,1.79496361625389361377e+09,1.43925810002656362485e-02,'completed',NULL,149.0,NULL,NULL,'{"wall_s":0.014392581000265636,"user_s":0.002676,"system_s":0.002676,"peak_memory_bytes":7012352.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-1');
INSERT INTO "runs" VALUES(1,2,2,'search','{"x":2,"mode":"b"}',1.79496361628043484687e+09,4,5,1.79496361637568211562e+09,1.78846630001316952984e-02,'completed',NULL,104.0,NULL,NULL,'{"wall_s":0.017884663000131695,"user_s":0.005168,"system_s":0.0,"peak_memory_bytes":7094272.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-2');
INSERT INTO "runs" VALUES(1,3,3,'search','{"x":4,"mode":"a"}',1.79496361640312242506e+09,6,7,1.79496361647864317891e+09,0.00869618199976685,'completed',NULL,116.0,NULL,NULL,'{"wall_s":0.00869618199976685,"user_s":0.004118,"system_s":0.0,"peak_memory_bytes":7045120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-3');
INSERT INTO "runs" VALUES(1,4,4,'search','{"x":1,"mode":"b"}',1.79496361816357445717e+09,8,9,1.79496361822878217704e+09,2.66860920000908663496e-02,'completed',NULL,101.0,NULL,NULL,'{"wall_s":0.026686092000090866,"user_s":0.003699,"system_s":0.0,"peak_memory_bytes":7053312.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-4');
INSERT INTO "runs" VALUES(1,5,5,'search','{"x":9,"mode":"a"}',1.79496361829520702365e+09,10,11,1.79496361835358953472e+09,9.21528200024113175459e-03,'completed',NULL,181.0,NULL,NULL,'{"wall_s":0.009215282000241132,"user_s":0.0033699999999999997,"system_s":0.0,"peak_memory_bytes":7061504.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-5');
INSERT INTO "runs" VALUES(1,6,6,'search','{"x":3,"mode":"b"}',1.79496361841717839242e+09,12,13,1.79496361847374176975e+09,3.00337479998233902733e-02,'completed',NULL,109.0,NULL,NULL,'{"wall_s":0.03003374799982339,"user_s":0.004359,"system_s":0.0,"peak_memory_bytes":7061504.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-6');
INSERT INTO "runs" VALUES(1,7,7,'search','{"x":2,"mode":"a"}',1.79496361854935431476e+09,14,15,1.79496361858908677101e+09,1.3030588000219722744e-02,'completed',NULL,104.0,NULL,NULL,'{"wall_s":0.013030588000219723,"user_s":0.004483,"system_s":0.0,"peak_memory_bytes":7200768.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/fb84bc6e25fa4f23815df06ec2b052d7-7');
INSERT INTO "runs" VALUES(2,0,0,'default','{"x":1}',1.79496362307960510254e+09,0,1,1.79496362317479062073e+09,1.60184480000680196098e-02,'completed',NULL,1.0,'[1.0]',NULL,'{"wall_s":0.01601844800006802,"user_s":0.0,"system_s":0.00454,"peak_memory_bytes":7045120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-0');
INSERT INTO "runs" VALUES(2,1,1,'search','{"x":9}',1.79496362320660972594e+09,2,3,1.7949636232704913616e+09,2.09283889998914673924e-02,'completed',NULL,9.0,'[9.0]',NULL,'{"wall_s":0.020928388999891467,"user_s":0.0051649999999999995,"system_s":0.0,"peak_memory_bytes":7036928.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-1');
INSERT INTO "runs" VALUES(2,2,2,'search','{"x":6}',1.79496362330432748799e+09,4,5,1.79496362335942244532e+09,1.56162059997768665198e-02,'completed',NULL,6.0,'[6.0]',NULL,'{"wall_s":0.015616205999776867,"user_s":0.0,"system_s":0.00421,"peak_memory_bytes":7049216.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-2');
INSERT INTO "runs" VALUES(2,3,3,'search','{"x":2}',1.79496362338756728174e+09,6,7,1.7949636234230315685e+09,1.28598790001888119149e-02,'completed',NULL,2.0,'[2.0]',NULL,'{"wall_s":0.012859879000188812,"user_s":0.0,"system_s":0.003779,"peak_memory_bytes":7155712.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-3');
INSERT INTO "runs" VALUES(2,4,4,'search','{"x":4}',1.79496362498292660716e+09,8,9,1.7949636250637075901e+09,1.33926739999878918752e-02,'completed',NULL,4.0,'[4.0]',NULL,'{"wall_s":0.013392673999987892,"user_s":0.0,"system_s":0.005638,"peak_memory_bytes":7094272.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-4');
INSERT INTO "runs" VALUES(2,5,5,'search','{"x":7}',1.79496362515633106236e+09,10,11,1.79496362523068499561e+09,1.80479289997492742259e-02,'completed',NULL,7.0,'[7.0]',NULL,'{"wall_s":0.018047928999749274,"user_s":0.0030269999999999997,"system_s":0.0030269999999999997,"peak_memory_bytes":7102464.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-5');
INSERT INTO "runs" VALUES(2,6,6,'search','{"x":3}',1.79496362531694674492e+09,12,13,1.79496362538085699081e+09,1.640713400001914124e-02,'completed',NULL,3.0,'[3.0]',NULL,'{"wall_s":0.01640713400001914,"user_s":0.0,"system_s":0.005672,"peak_memory_bytes":7036928.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-6');
INSERT INTO "runs" VALUES(2,7,7,'search','{"x":5}',1.79496362545461487763e+09,14,15,1.79496362553180027008e+09,1.33249680002336390316e-02,'completed',NULL,5.0,'[5.0]',NULL,'{"wall_s":0.013324968000233639,"user_s":0.0,"system_s":0.005902,"peak_memory_bytes":7045120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-7');
INSERT INTO "runs" VALUES(2,8,8,'search','{"x":8}',1.79496362560191106798e+09,16,17,1.79496362570765805241e+09,1.64424489998964418191e-02,'completed',NULL,8.0,'[8.0]',NULL,'{"wall_s":0.016442448999896442,"user_s":0.00268,"system_s":0.002601,"peak_memory_bytes":7053312.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/01688eac42514451956ff95c1c864540-8');
INSERT INTO "runs" VALUES(3,0,0,'default','{"x":0,"y":0}',1.79496362996070909501e+09,0,1,1.794963630036324501e+09,1.7563994000283855712e-02,'completed',NULL,1.0,NULL,NULL,'{"wall_s":0.017563994000283856,"user_s":0.0,"system_s":0.005273,"peak_memory_bytes":7159808.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-0');
INSERT INTO "runs" VALUES(3,1,1,'search','{"x":7,"y":5}',1.79496363008089065546e+09,2,3,1.79496363014363813402e+09,7.38355999965278897434e-03,'completed',NULL,13.0,NULL,NULL,'{"wall_s":0.007383559999652789,"user_s":0.003861,"system_s":0.0,"peak_memory_bytes":7028736.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-1');
INSERT INTO "runs" VALUES(3,2,0,'default','{"x":0,"y":0}',1.79496363016074705126e+09,4,5,1.79496363020445060722e+09,1.53525939999781257938e-02,'completed',NULL,1.0,NULL,NULL,'{"wall_s":0.015352593999978126,"user_s":0.004664,"system_s":0.0,"peak_memory_bytes":7061504.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-2');
INSERT INTO "runs" VALUES(3,3,2,'search','{"x":1,"y":8}',1.7949636302250931263e+09,6,7,1.79496363028362298014e+09,1.58386520001840835902e-02,'completed',NULL,10.0,NULL,NULL,'{"wall_s":0.015838652000184084,"user_s":0.0,"system_s":0.0046159999999999994,"peak_memory_bytes":7159808.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-3');
INSERT INTO "runs" VALUES(3,4,2,'search','{"x":1,"y":8}',1.79496363031116747859e+09,8,9,1.79496363037441349031e+09,1.70037479997517948504e-02,'completed',NULL,10.0,NULL,NULL,'{"wall_s":0.017003747999751795,"user_s":0.000381,"system_s":0.005281,"peak_memory_bytes":7127040.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-4');
INSERT INTO "runs" VALUES(3,5,3,'search','{"x":4,"y":0}',1.79496363040574145319e+09,10,11,1.79496363047472977641e+09,0.00870947699968383,'completed',NULL,5.0,NULL,NULL,'{"wall_s":0.00870947699968383,"user_s":0.0,"system_s":0.002718,"peak_memory_bytes":7020544.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/0831d59b63c742649cb077fcdbc6060c-5');
INSERT INTO "runs" VALUES(4,0,0,'default','{"bs":512}',1.79496363476706886292e+09,0,1,1.79496363481776523588e+09,0.561933491000218,'completed',NULL,4.89406082400364539353e-01,NULL,NULL,'{"wall_s":0.48940608240036454,"user_s":0.026914,"system_s":0.261301,"peak_memory_bytes":6451200.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-0');
INSERT INTO "runs" VALUES(4,1,1,'search','{"bs":32768}',1.79496363539520454406e+09,2,3,1.7949636354524409771e+09,1.9664841299982072087e-01,'completed',NULL,0.0892854273888588,NULL,NULL,'{"wall_s":0.0892854273888588,"user_s":0.0039169999999999995,"system_s":0.06947199999999999,"peak_memory_bytes":6451200.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-1');
INSERT INTO "runs" VALUES(4,2,2,'search','{"bs":4194304}',1.79496363669615721699e+09,4,5,1.79496363671796822555e+09,4.29509235999830707442e-01,'completed',NULL,4.05572964332350238692e-01,NULL,NULL,'{"wall_s":0.40557296433235024,"user_s":0.007534,"system_s":0.23216399999999998,"peak_memory_bytes":6451200.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-2');
INSERT INTO "runs" VALUES(4,3,3,'search','{"bs":524288}',1794963637.18036,6,7,1.79496363721526765826e+09,1.03966179000053671188e-01,'completed',NULL,7.62977028953173430636e-02,NULL,NULL,'{"wall_s":0.07629770289531734,"user_s":0.007703,"system_s":0.051521,"peak_memory_bytes":6451200.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-3');
INSERT INTO "runs" VALUES(4,4,4,'search','{"bs":4096}',1.79496363733915114402e+09,8,9,1.79496363737758278847e+09,2.69306466999751137336e-01,'completed',NULL,2.33122394505244301399e-01,NULL,NULL,'{"wall_s":0.2331223945052443,"user_s":0.005998,"system_s":0.11118099999999999,"peak_memory_bytes":6459392.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-4');
INSERT INTO "runs" VALUES(4,5,5,'search','{"bs":2097152}',1.79496363767495894429e+09,10,11,1.79496363770866250997e+09,1.86673452000377437798e-01,'completed',NULL,1.05353404621837398735e-01,NULL,NULL,'{"wall_s":0.1053534046218374,"user_s":0.0062439999999999996,"system_s":0.084131,"peak_memory_bytes":6533120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/c062a32e3b1f4f759bf2effad3f5fb4d-5');
INSERT INTO "runs" VALUES(5,0,0,'default','{"x":30}',1.79496366408291363721e+09,0,1,1.79496366411268854141e+09,4.73197400001481582876e-02,'completed',NULL,4.73197400001481582876e-02,NULL,NULL,'{"wall_s":0.04731974000014816,"user_s":0.0025369999999999998,"system_s":0.0017749999999999999,"peak_memory_bytes":7045120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-0');
INSERT INTO "runs" VALUES(5,1,1,'search','{"x":20}',1.79496366417224144937e+09,2,3,1.79496366420172572138e+09,3.80930579999585461337e-02,'completed',NULL,3.80930579999585461337e-02,NULL,NULL,'{"wall_s":0.038093057999958546,"user_s":0.0031839999999999998,"system_s":0.001372,"peak_memory_bytes":7045120.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-1');
INSERT INTO "runs" VALUES(5,2,2,'search','{"x":10}',1794963664.24646,4,5,1.79496366427878260613e+09,3.26603309999882185366e-02,'completed',NULL,3.26603309999882185366e-02,NULL,NULL,'{"wall_s":0.03266033099998822,"user_s":0.005207,"system_s":0.0,"peak_memory_bytes":7041024.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-2');
INSERT INTO "runs" VALUES(5,3,3,'search','{"x":3}',1.79496366431603550915e+09,6,7,1.79496366434102654456e+09,0.0380781260000731,'completed',NULL,0.0380781260000731,NULL,NULL,'{"wall_s":0.0380781260000731,"user_s":0.0,"system_s":0.003714,"peak_memory_bytes":7077888.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-3');
INSERT INTO "runs" VALUES(5,4,4,'search','{"x":8}',1.79496366438483524316e+09,8,9,1.79496366442602014543e+09,1.0364524900023752707e-01,'completed',NULL,1.0364524900023752707e-01,NULL,NULL,'{"wall_s":0.10364524900023753,"user_s":0.001875,"system_s":0.004418,"peak_memory_bytes":7041024.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-4');
INSERT INTO "runs" VALUES(5,5,5,'search','{"x":24}',1.7949636645356180668e+09,10,11,1.79496366457239127159e+09,3.90385629998490912839e-02,'completed',NULL,3.90385629998490912839e-02,NULL,NULL,'{"wall_s":0.03903856299984909,"user_s":0.0056,"system_s":0.0,"peak_memory_bytes":7073792.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-5');
INSERT INTO "runs" VALUES(5,6,6,'search','{"x":25}',1.79496366461981892584e+09,12,13,1.79496366465904092792e+09,4.32236689998717338312e-02,'completed',NULL,4.32236689998717338312e-02,NULL,NULL,'{"wall_s":0.043223668999871734,"user_s":0.0033669999999999998,"system_s":0.0017189999999999998,"peak_memory_bytes":7094272.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-6');
INSERT INTO "runs" VALUES(5,7,2,'search','{"x":10}',1.79496366471021795265e+09,14,15,1.79496366475494384764e+09,2.74447790002341207582e-02,'completed',NULL,2.74447790002341207582e-02,NULL,NULL,'{"wall_s":0.02744477900023412,"user_s":0.004895,"system_s":0.0,"peak_memory_bytes":7159808.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-7');
INSERT INTO "runs" VALUES(5,8,2,'search','{"x":10}',1.79496366479463434224e+09,16,17,1.79496366484703159327e+09,2.66023079998376488219e-02,'completed',NULL,2.66023079998376488219e-02,NULL,NULL,'{"wall_s":0.02660230799983765,"user_s":0.0014299999999999998,"system_s":0.0037459999999999998,"peak_memory_bytes":7094272.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-8');
INSERT INTO "runs" VALUES(5,9,7,'search','{"x":12}',1.79496366487880706789e+09,18,19,1.79496366492682075501e+09,3.06110030001036648172e-02,'completed',NULL,3.06110030001036648172e-02,NULL,NULL,'{"wall_s":0.030611003000103665,"user_s":0.005409,"system_s":0.0,"peak_memory_bytes":7028736.0,"exit_code":0.0}','/home/ada/.local/share/luthier/runs/4133151e45884aa8be4b4af888ec8dbb-9');
CREATE TABLE users (
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	password_hash TEXT, 
	disabled BOOLEAN NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (name)
);
CREATE INDEX ix_experiments_status ON experiments (status);
CREATE INDEX ix_passes_user_name ON passes (user_name);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('experiments',5);
COMMIT;
