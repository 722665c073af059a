PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE luthier_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT luthier_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO luthier_version VALUES('0011');
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
	logs TEXT, uid TEXT DEFAULT '' NOT NULL, batch_job TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (experiment_id, number), 
	CONSTRAINT fk_runs_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id), 
	CONSTRAINT uq_runs_experiment_id_submit_order UNIQUE (experiment_id, submit_order), 
	CONSTRAINT uq_runs_experiment_id_finish_order UNIQUE (experiment_id, finish_order)
);
INSERT INTO runs VALUES(1,0,0,'default','{"x":1,"mode":"a"}',1795068855.1325819492,0,1,1795068855.1849412917,0.0014333850000411985092,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0014333850000411985,"user_s":0.002032,"system_s":0.0,"peak_memory_bytes":7593984.0,"exit_code":0.0,"suggest_s":6.551399997078988e-05}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-0-f08bbbc291c4','f08bbbc291c4',NULL);
INSERT INTO runs VALUES(1,1,1,'search','{"x":6,"mode":"b"}',1795068855.6740691661,2,3,1795068855.7126514912,0.0025892639999938182882,'completed',NULL,5.0,NULL,NULL,'{"wall_s":0.0025892639999938183,"user_s":0.0021149999999999997,"system_s":0.0,"peak_memory_bytes":7733248.0,"exit_code":0.0,"suggest_s":0.4729721580000614}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-1-8414681afbc2','8414681afbc2',NULL);
INSERT INTO runs VALUES(1,2,2,'search','{"x":2,"mode":"b"}',1795068855.7368736266,4,5,1795068855.7708404063,0.0012721389999796883785,'completed',NULL,21.0,NULL,NULL,'{"wall_s":0.0012721389999796884,"user_s":0.001838,"system_s":0.0,"peak_memory_bytes":7675904.0,"exit_code":0.0,"suggest_s":0.00018993300000147428}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-2-24f532aeb535','24f532aeb535',NULL);
INSERT INTO runs VALUES(1,3,3,'search','{"x":4,"mode":"a"}',1795068855.7807552813,6,7,1795068855.811609745,0.0011633479999773044255,'completed',NULL,6.0,NULL,NULL,'{"wall_s":0.0011633479999773044,"user_s":0.0018299999999999998,"system_s":0.0,"peak_memory_bytes":7675904.0,"exit_code":0.0,"suggest_s":0.00019676700003401493}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-3-d8fbde30c2a4','d8fbde30c2a4',NULL);
INSERT INTO runs VALUES(1,4,4,'search','{"x":7,"mode":"a"}',1795068856.1446251869,8,9,1795068856.1850674151,0.0047740550000980874756,'completed',NULL,3.0,NULL,NULL,'{"wall_s":0.0047740550000980875,"user_s":0.0,"system_s":0.002142,"peak_memory_bytes":7602176.0,"exit_code":0.0,"suggest_s":0.32560462399999324}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-4-ed607fe442c8','ed607fe442c8',NULL);
INSERT INTO runs VALUES(1,5,5,'search','{"x":8,"mode":"a"}',1795068856.2237486838,10,11,1795068856.2544810772,0.0030569709999781480291,'completed',NULL,6.0,NULL,NULL,'{"wall_s":0.003056970999978148,"user_s":0.00209,"system_s":0.0,"peak_memory_bytes":7577600.0,"exit_code":0.0,"suggest_s":0.022592689000020982}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-5-45d9a77659ee','45d9a77659ee',NULL);
INSERT INTO runs VALUES(1,6,6,'search','{"x":7,"mode":"b"}',1795068856.2920732498,12,13,1795068856.3355417251,0.0013273629999730474082,'completed',NULL,6.0,NULL,NULL,'{"wall_s":0.0013273629999730474,"user_s":0.0019779999999999997,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.023333986000011464}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-6-c16175f79494','c16175f79494',NULL);
INSERT INTO runs VALUES(1,7,7,'search','{"x":6,"mode":"a"}',1795068856.3504433631,14,15,1795068856.3907539843,0.0076382289998946362175,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.007638228999894636,"user_s":0.0,"system_s":0.001941,"peak_memory_bytes":7569408.0,"exit_code":0.0,"suggest_s":0.005914397000083227}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-7-92d1238da695','92d1238da695',NULL);
INSERT INTO runs VALUES(1,8,7,'verify','{"x":6,"mode":"a"}',1795068856.4046127795,16,17,1795068856.435687065,0.0012162570000100458855,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.0012162570000100459,"user_s":0.0018729999999999999,"system_s":0.0,"peak_memory_bytes":7675904.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-8-f0794e5c3655','f0794e5c3655',NULL);
INSERT INTO runs VALUES(1,9,0,'verify','{"x":1,"mode":"a"}',1795068856.4483041763,18,19,1795068856.4762723445,0.0044657280000137689057,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.004465728000013769,"user_s":0.001821,"system_s":0.0,"peak_memory_bytes":7577600.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-9-54c2f1c13070','54c2f1c13070',NULL);
INSERT INTO runs VALUES(1,10,7,'verify','{"x":6,"mode":"a"}',1795068856.4965167045,20,21,1795068856.5244674682,0.0037085699999579446739,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.0037085699999579447,"user_s":0.0018399999999999998,"system_s":0.0,"peak_memory_bytes":7565312.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-10-a2fae83e6c35','a2fae83e6c35',NULL);
INSERT INTO runs VALUES(1,11,0,'verify','{"x":1,"mode":"a"}',1795068856.5361769199,22,23,1795068856.5614302157,0.0013270670000338213867,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0013270670000338214,"user_s":0.001916,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-11-d6d688ecfb53','d6d688ecfb53',NULL);
INSERT INTO runs VALUES(1,12,7,'verify','{"x":6,"mode":"a"}',1795068856.5685150623,24,25,1795068856.5918517113,0.0012424559999999473802,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.0012424559999999474,"user_s":0.001808,"system_s":0.0,"peak_memory_bytes":7569408.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-12-2c4a6bb69617','2c4a6bb69617',NULL);
INSERT INTO runs VALUES(1,13,0,'verify','{"x":1,"mode":"a"}',1795068856.6002421379,26,27,1795068856.6230142116,0.0051854910000201925868,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.005185491000020193,"user_s":0.00197,"system_s":0.0,"peak_memory_bytes":7569408.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/0e649eec01fc442eb21ad5720cd5b674-13-c79e9616f43e','c79e9616f43e',NULL);
INSERT INTO runs VALUES(2,0,0,'default','{"x":1,"mode":"a"}',1795068859.9378283023,0,1,1795068859.9879438876,0.0025786490000427875202,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0025786490000427875,"user_s":0.002466,"system_s":0.0,"peak_memory_bytes":7565312.0,"exit_code":0.0,"suggest_s":6.498000004739879e-05}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-0-df6fc9df0792','df6fc9df0792',NULL);
INSERT INTO runs VALUES(2,1,1,'search','{"x":6,"mode":"a"}',1795068860.0170834064,2,3,1795068860.0542192459,0.001361676999977134983,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.001361676999977135,"user_s":0.0020269999999999997,"system_s":0.0,"peak_memory_bytes":7675904.0,"exit_code":0.0,"suggest_s":5.1829000085490406e-05}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-1-0b8ce9f07571','0b8ce9f07571',NULL);
INSERT INTO runs VALUES(2,2,2,'search','{"x":7,"mode":"a"}',1795068860.0830311775,4,5,1795068860.1354842185,0.0013477820000389328924,'completed',NULL,3.0,NULL,NULL,'{"wall_s":0.001347782000038933,"user_s":0.0019459999999999998,"system_s":0.0,"peak_memory_bytes":7553024.0,"exit_code":0.0,"suggest_s":4.830499995023274e-05}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-2-36851fa0b780','36851fa0b780',NULL);
INSERT INTO runs VALUES(2,3,3,'search','{"x":6,"mode":"b"}',1795068860.1481616497,6,7,1795068860.4370598792,0.0014993820000199775677,'completed',NULL,5.0,NULL,NULL,'{"wall_s":0.0014993820000199776,"user_s":0.002365,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":4.717699994216673e-05}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-3-8edabd5d7f36','8edabd5d7f36',NULL);
INSERT INTO runs VALUES(2,4,4,'search','{"x":5,"mode":"a"}',1795068861.0483839511,8,9,1795068861.0875799656,0.0069658539999863933189,'completed',NULL,3.0,NULL,NULL,'{"wall_s":0.006965853999986393,"user_s":0.0018479999999999998,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.5871256159999803}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-4-6f62cf06060c','6f62cf06060c',NULL);
INSERT INTO runs VALUES(2,5,5,'search','{"x":5,"mode":"b"}',1795068861.1471872329,10,11,1795068861.184473753,0.0013195129999985510949,'completed',NULL,6.0,NULL,NULL,'{"wall_s":0.001319512999998551,"user_s":0.001908,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.043283288999987235}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-5-9506516cf01f','9506516cf01f',NULL);
INSERT INTO runs VALUES(2,6,1,'verify','{"x":6,"mode":"a"}',1795068861.2040889263,12,13,1795068861.240755558,0.0035758729999315619352,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.003575872999931562,"user_s":0.001838,"system_s":0.0,"peak_memory_bytes":7725056.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-6-f6ee8a0debad','f6ee8a0debad',NULL);
INSERT INTO runs VALUES(2,7,0,'verify','{"x":1,"mode":"a"}',1795068861.2605624199,14,15,1795068861.2891614436,0.0012897929999553525703,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0012897929999553526,"user_s":0.001782,"system_s":0.0,"peak_memory_bytes":7553024.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-7-2d72557f4ea9','2d72557f4ea9',NULL);
INSERT INTO runs VALUES(2,8,1,'verify','{"x":6,"mode":"a"}',1795068861.3083724975,16,17,1795068861.3446154594,0.0012458710000373685033,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.0012458710000373685,"user_s":0.001898,"system_s":0.0,"peak_memory_bytes":7577600.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-8-3f41637ae8ff','3f41637ae8ff',NULL);
INSERT INTO runs VALUES(2,9,0,'verify','{"x":1,"mode":"a"}',1795068861.3606357574,18,19,1795068861.397362709,0.0044732620000331735354,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0044732620000331735,"user_s":0.0,"system_s":0.00215,"peak_memory_bytes":7548928.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-9-21150e704249','21150e704249',NULL);
INSERT INTO runs VALUES(2,10,0,'verify','{"x":1,"mode":"a"}',1795068861.424599409,20,21,1795068861.4574639797,0.0013524089999918942339,'completed',NULL,27.0,NULL,NULL,'{"wall_s":0.0013524089999918942,"user_s":0.0020169999999999997,"system_s":0.0,"peak_memory_bytes":7716864.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-10-627ebf9fd662','627ebf9fd662',NULL);
INSERT INTO runs VALUES(2,11,1,'verify','{"x":6,"mode":"a"}',1795068861.4719042777,22,23,1795068861.5103120803,0.0012819469999385546543,'completed',NULL,2.0,NULL,NULL,'{"wall_s":0.0012819469999385547,"user_s":0.002021,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/33e53208a4f74fd5b0bac63fe7f1b8be-11-d88aa80b0fa0','d88aa80b0fa0',NULL);
INSERT INTO runs VALUES(3,0,0,'default','{"x":1,"mode":"a"}',1795068864.3303177356,0,1,1795068864.3828272819,0.0015246550000256320345,'completed',NULL,27.0,'[99.0]',NULL,'{"wall_s":0.001524655000025632,"user_s":0.002404,"system_s":0.0,"peak_memory_bytes":7544832.0,"exit_code":0.0,"suggest_s":5.4157000022314605e-05}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-0-9bff201767a4','9bff201767a4',NULL);
INSERT INTO runs VALUES(3,1,1,'search','{"x":5,"mode":"b"}',1795068864.4045040606,2,3,1795068864.4422910213,0.0014264160000720949028,'completed',NULL,6.0,'[95.0]',NULL,'{"wall_s":0.001426416000072095,"user_s":0.002169,"system_s":0.0,"peak_memory_bytes":7884800.0,"exit_code":0.0,"suggest_s":0.0007089750000659478}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-1-3e00421911a7','3e00421911a7',NULL);
INSERT INTO runs VALUES(3,2,2,'search','{"x":3,"mode":"b"}',1795068864.4679534435,4,5,1795068864.5011978149,0.0023220870000386639731,'failed','exit code 4',NULL,NULL,NULL,'{"wall_s":0.002322087000038664,"user_s":0.0021,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":4.0,"suggest_s":7.639099999323662e-05}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-2-5ad73a5cfdfe','5ad73a5cfdfe',NULL);
INSERT INTO runs VALUES(3,3,3,'search','{"x":8,"mode":"a"}',1795068864.5130057335,6,7,1795068864.5520944594,0.0075170710000520557514,'completed',NULL,6.0,'[92.0]',NULL,'{"wall_s":0.007517071000052056,"user_s":0.0021639999999999997,"system_s":0.0,"peak_memory_bytes":7675904.0,"exit_code":0.0,"suggest_s":7.120799989479565e-05}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-3-370ff34a0ba8','370ff34a0ba8',NULL);
INSERT INTO runs VALUES(3,4,4,'search','{"x":1,"mode":"b"}',1795068865.6005582808,8,9,1795068865.6380171775,0.0069653540000444991164,'completed',NULL,30.0,'[99.0]',NULL,'{"wall_s":0.006965354000044499,"user_s":0.002675,"system_s":0.0,"peak_memory_bytes":7540736.0,"exit_code":0.0,"suggest_s":1.025840076999998}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-4-f0ecb535a8ae','f0ecb535a8ae',NULL);
INSERT INTO runs VALUES(3,5,5,'search','{"x":2,"mode":"a"}',1795068865.7101197242,10,11,1795068865.758929491,0.0095080300000063289189,'completed',NULL,18.0,'[98.0]',NULL,'{"wall_s":0.009508030000006329,"user_s":0.0,"system_s":0.002381,"peak_memory_bytes":7548928.0,"exit_code":0.0,"suggest_s":0.040481421999970735}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-5-10e89976abbc','10e89976abbc',NULL);
INSERT INTO runs VALUES(3,6,6,'search','{"x":3,"mode":"a"}',1795068865.8347222805,12,13,1795068865.8979954719,0.0031942790000130116823,'failed','exit code 4',NULL,NULL,NULL,'{"wall_s":0.0031942790000130117,"user_s":0.00243,"system_s":0.0,"peak_memory_bytes":7565312.0,"exit_code":4.0,"suggest_s":0.03003106400001343}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-6-6ce4c51faed7','6ce4c51faed7',NULL);
INSERT INTO runs VALUES(3,7,7,'search','{"x":4,"mode":"b"}',1795068865.9468498229,14,15,1795068866.0002040862,0.0031130899999425309943,'completed',NULL,9.0,'[96.0]',NULL,'{"wall_s":0.003113089999942531,"user_s":0.0023309999999999997,"system_s":0.0,"peak_memory_bytes":7553024.0,"exit_code":0.0,"suggest_s":0.021965668999996524}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-7-7e5cbd15c0e2','7e5cbd15c0e2',NULL);
INSERT INTO runs VALUES(3,8,8,'search','{"x":6,"mode":"b"}',1795068866.0456306934,16,17,1795068866.0886127949,0.0044605030000184342497,'completed',NULL,5.0,'[94.0]',NULL,'{"wall_s":0.004460503000018434,"user_s":0.0021999999999999997,"system_s":0.0,"peak_memory_bytes":7680000.0,"exit_code":0.0,"suggest_s":0.024589668999965397}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-8-b5da6c32645a','b5da6c32645a',NULL);
INSERT INTO runs VALUES(3,9,9,'search','{"x":4,"mode":"a"}',1795068866.1324586867,18,19,1795068866.1691665649,0.0013826660000404444872,'completed',NULL,6.0,'[96.0]',NULL,'{"wall_s":0.0013826660000404445,"user_s":0.0,"system_s":0.002176,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.030173499999932574}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-9-44cc475e2795','44cc475e2795',NULL);
INSERT INTO runs VALUES(3,10,10,'search','{"x":5,"mode":"a"}',1795068866.2167649269,20,21,1795068866.2586929797,0.013759315000015703844,'completed',NULL,3.0,'[95.0]',NULL,'{"wall_s":0.013759315000015704,"user_s":0.0,"system_s":0.002642,"peak_memory_bytes":7557120.0,"exit_code":0.0,"suggest_s":0.028011970999955338}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-10-72aaba76ee38','72aaba76ee38',NULL);
INSERT INTO runs VALUES(3,11,11,'search','{"x":6,"mode":"a"}',1795068866.3306992053,22,23,1795068866.3747658728,0.016294812999944952025,'completed',NULL,2.0,'[94.0]',NULL,'{"wall_s":0.016294812999944952,"user_s":0.00245,"system_s":0.0,"peak_memory_bytes":7548928.0,"exit_code":0.0,"suggest_s":0.02991013700000167}','/home/ada/study/data/luthier/runs/f011de97b1fa40d2bf82340bec5c3206-11-e4ab8f087bae','e4ab8f087bae',NULL);
INSERT INTO runs VALUES(4,0,0,'default','{"d":1}',1795068869.0419149398,0,1,1795068869.0938711166,0.0287495620000299823,'completed',NULL,0.0287495620000299823,NULL,NULL,'{"wall_s":0.028749562000029982,"user_s":0.0032819999999999998,"system_s":0.0,"peak_memory_bytes":7577600.0,"exit_code":0.0,"suggest_s":7.127499998205167e-05}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-0-68d81329b455','68d81329b455',NULL);
INSERT INTO runs VALUES(4,1,1,'search','{"d":4}',1795068869.1540586948,2,3,1795068869.2033081054,0.061027797999940958106,'completed',NULL,0.061027797999940958106,NULL,NULL,'{"wall_s":0.06102779799994096,"user_s":0.0033729999999999997,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.00027752899995903135}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-1-2fdf76b11ffd','2fdf76b11ffd',NULL);
INSERT INTO runs VALUES(4,2,2,'search','{"d":2}',1795068869.2860178947,4,5,1795068869.3300919532,0.03470460100004402193,'completed',NULL,0.03470460100004402193,NULL,NULL,'{"wall_s":0.03470460100004402,"user_s":0.003397,"system_s":0.0,"peak_memory_bytes":7557120.0,"exit_code":0.0,"suggest_s":0.0001644159999614203}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-2-55549560a04a','55549560a04a',NULL);
INSERT INTO runs VALUES(4,3,3,'search','{"d":3}',1795068869.4090270996,6,7,1795068869.4635877609,0.059346516999994491925,'completed',NULL,0.059346516999994491925,NULL,NULL,'{"wall_s":0.05934651699999449,"user_s":0.003198,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.00015724200000022392}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-3-05513a7a4e0a','05513a7a4e0a',NULL);
INSERT INTO runs VALUES(4,4,0,'default','{"d":1}',1795068869.5305721759,8,9,1795068869.5983231068,0.045932294000067486194,'completed',NULL,0.045932294000067486194,NULL,NULL,'{"wall_s":0.045932294000067486,"user_s":0.003743,"system_s":0.0,"peak_memory_bytes":7581696.0,"exit_code":0.0,"suggest_s":0.00020922700002756756}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-4-b42562dda87c','b42562dda87c',NULL);
INSERT INTO runs VALUES(4,5,2,'search','{"d":2}',1795068869.6531023978,10,11,1795068869.7052960395,0.033709518000023308559,'completed',NULL,0.033709518000023308559,NULL,NULL,'{"wall_s":0.03370951800002331,"user_s":0.001019,"system_s":0.0025859999999999998,"peak_memory_bytes":7548928.0,"exit_code":0.0,"suggest_s":6.434100009755639e-05}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-5-1d7e5e6c22f2','1d7e5e6c22f2',NULL);
INSERT INTO runs VALUES(4,6,2,'search','{"d":2}',1795068869.7570717334,12,13,1795068869.8092324733,0.037163927000051444338,'completed',NULL,0.037163927000051444338,NULL,NULL,'{"wall_s":0.037163927000051444,"user_s":0.001027,"system_s":0.002588,"peak_memory_bytes":7548928.0,"exit_code":0.0,"suggest_s":0.00015166200000749086}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-6-b7d94160fa62','b7d94160fa62',NULL);
INSERT INTO runs VALUES(4,7,0,'default','{"d":1}',1795068869.8847227097,14,15,1795068869.9346582889,0.033577820999994401063,'completed',NULL,0.033577820999994401063,NULL,NULL,'{"wall_s":0.0335778209999944,"user_s":0.0036339999999999996,"system_s":0.0,"peak_memory_bytes":7716864.0,"exit_code":0.0,"suggest_s":0.000142986000014389}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-7-8beeec92ef25','8beeec92ef25',NULL);
INSERT INTO runs VALUES(4,8,0,'default','{"d":1}',1795068869.9926230906,16,17,1795068870.0389282703,0.028830867000010584888,'completed',NULL,0.028830867000010584888,NULL,NULL,'{"wall_s":0.028830867000010585,"user_s":0.0034289999999999998,"system_s":0.0,"peak_memory_bytes":7548928.0,"exit_code":0.0,"suggest_s":0.00013762999992650293}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-8-2703ad390e92','2703ad390e92',NULL);
INSERT INTO runs VALUES(4,9,2,'search','{"d":2}',1795068870.095969677,18,19,1795068870.1605181694,0.052250588999982028326,'completed',NULL,0.052250588999982028326,NULL,NULL,'{"wall_s":0.05225058899998203,"user_s":0.0039059999999999997,"system_s":0.0,"peak_memory_bytes":7536640.0,"exit_code":0.0,"suggest_s":0.00012743000002046756}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-9-eb4a39ca4cc3','eb4a39ca4cc3',NULL);
INSERT INTO runs VALUES(4,10,0,'verify','{"d":1}',1795068871.2880446911,20,21,1795068871.3475759028,0.02321048300007078069,'completed',NULL,0.02321048300007078069,NULL,NULL,'{"wall_s":0.02321048300007078,"user_s":0.003601,"system_s":0.0,"peak_memory_bytes":7557120.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-10-af56d96d2788','af56d96d2788',NULL);
INSERT INTO runs VALUES(4,11,2,'verify','{"d":2}',1795068871.3952715397,22,23,1795068871.4463367462,0.032097790999955577717,'completed',NULL,0.032097790999955577717,NULL,NULL,'{"wall_s":0.03209779099995558,"user_s":0.003646,"system_s":0.0,"peak_memory_bytes":7581696.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-11-49cf6575b4d1','49cf6575b4d1',NULL);
INSERT INTO runs VALUES(4,12,2,'verify','{"d":2}',1795068871.499264717,24,25,1795068871.555619955,0.063453825999999935447,'completed',NULL,0.063453825999999935447,NULL,NULL,'{"wall_s":0.06345382599999994,"user_s":0.0037189999999999996,"system_s":0.0,"peak_memory_bytes":7569408.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-12-73a51009f6cd','73a51009f6cd',NULL);
INSERT INTO runs VALUES(4,13,0,'verify','{"d":1}',1795068871.6314935683,26,27,1795068872.0062832831,0.043155029999979888089,'completed',NULL,0.043155029999979888089,NULL,NULL,'{"wall_s":0.04315502999997989,"user_s":0.003832,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-13-c9a9e6402c73','c9a9e6402c73',NULL);
INSERT INTO runs VALUES(4,14,0,'verify','{"d":1}',1795068872.0689513683,28,29,1795068872.1196057796,0.031472768000071482674,'completed',NULL,0.031472768000071482674,NULL,NULL,'{"wall_s":0.03147276800007148,"user_s":0.0036379999999999997,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-14-0c52517c04e0','0c52517c04e0',NULL);
INSERT INTO runs VALUES(4,15,2,'verify','{"d":2}',1795068872.160460472,30,31,1795068872.1986489296,0.039520637000009628536,'completed',NULL,0.039520637000009628536,NULL,NULL,'{"wall_s":0.03952063700000963,"user_s":0.0036149999999999997,"system_s":0.0,"peak_memory_bytes":7577600.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-15-efc4d13b9e7b','efc4d13b9e7b',NULL);
INSERT INTO runs VALUES(4,16,0,'default','{"d":1}',1795068877.1498637199,32,33,1795068877.2202715873,0.020456778000038866593,'completed',NULL,0.020456778000038866593,NULL,NULL,'{"wall_s":0.020456778000038867,"user_s":0.002371,"system_s":0.0011049999999999999,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.0005155989999821031}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-16-a764c8b6d3d8','a764c8b6d3d8',NULL);
INSERT INTO runs VALUES(4,17,2,'search','{"d":2}',1795068877.2484931945,34,35,1795068877.3625810145,0.065947983999990356096,'completed',NULL,0.065947983999990356096,NULL,NULL,'{"wall_s":0.06594798399999036,"user_s":0.0037819999999999998,"system_s":0.0,"peak_memory_bytes":7569408.0,"exit_code":0.0,"suggest_s":0.00021319699999367003}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-17-b483bf3fefbd','b483bf3fefbd',NULL);
INSERT INTO runs VALUES(4,18,0,'default','{"d":1}',1795068877.4447524547,36,37,1795068877.4997684955,0.028210618000002796179,'completed',NULL,0.028210618000002796179,NULL,NULL,'{"wall_s":0.028210618000002796,"user_s":0.001036,"system_s":0.002632,"peak_memory_bytes":7593984.0,"exit_code":0.0,"suggest_s":0.0001300139999784733}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-18-47e9e2b84a43','47e9e2b84a43',NULL);
INSERT INTO runs VALUES(4,19,2,'search','{"d":2}',1795068877.5437562465,38,39,1795068877.603834629,0.047758502999954544065,'completed',NULL,0.047758502999954544065,NULL,NULL,'{"wall_s":0.047758502999954544,"user_s":0.0036309999999999997,"system_s":0.0,"peak_memory_bytes":7561216.0,"exit_code":0.0,"suggest_s":0.0001319219999231791}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-19-c5721137fe2d','c5721137fe2d',NULL);
INSERT INTO runs VALUES(4,20,0,'verify','{"d":1}',1795068877.7158505916,40,41,1795068877.7764458656,0.032587809000006018322,'completed',NULL,0.032587809000006018322,NULL,NULL,'{"wall_s":0.03258780900000602,"user_s":0.0037819999999999998,"system_s":0.0,"peak_memory_bytes":7553024.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-20-b3246f43c614','b3246f43c614',NULL);
INSERT INTO runs VALUES(4,21,2,'verify','{"d":2}',1795068877.8206722736,42,43,1795068877.8690891265,0.025505595000026914931,'completed',NULL,0.025505595000026914931,NULL,NULL,'{"wall_s":0.025505595000026915,"user_s":0.003503,"system_s":0.0,"peak_memory_bytes":7610368.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/fab49033a4204768bd1db83a4421fe0d-21-d41aebaaaa4f','d41aebaaaa4f',NULL);
INSERT INTO runs VALUES(5,0,0,'default','{"SIZE":1}',1795068914.162248373,0,1,1795068914.2155890464,0.031355683000128919957,'completed',NULL,0.00019031600000000002573,NULL,NULL,'{"wall_s":0.007806472000083886,"user_s":0.006549999999999999,"system_s":0.0,"peak_memory_bytes":7139328.0,"exit_code":0.0,"suggest_s":5.777999990641547e-05}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-0-be2002fdcb1b','be2002fdcb1b',NULL);
INSERT INTO runs VALUES(5,1,1,'search','{"SIZE":2}',1795068914.2678694725,2,3,1795068914.3094966411,0.040655895000099917524,'completed',NULL,0.0001605819999999999882,NULL,NULL,'{"wall_s":0.00934485300012966,"user_s":0.008301,"system_s":0.0,"peak_memory_bytes":7159808.0,"exit_code":0.0,"suggest_s":0.00040139199995792296}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-1-f289aa330670','f289aa330670',NULL);
INSERT INTO runs VALUES(5,2,2,'search','{"SIZE":3}',1795068914.3655412197,4,5,1795068914.4091205596,0.040692196000009062117,'completed',NULL,0.00019074499999999997706,NULL,NULL,'{"wall_s":0.00938745000007657,"user_s":0.008251,"system_s":0.0,"peak_memory_bytes":7086080.0,"exit_code":0.0,"suggest_s":0.0003093620000527153}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-2-b2b0b75d5aa5','b2b0b75d5aa5',NULL);
INSERT INTO runs VALUES(5,3,3,'search','{"SIZE":4}',1795068914.4654903412,6,7,1795068914.4982249737,0.043378919999895515502,'completed',NULL,0.0002010099999999999745,NULL,NULL,'{"wall_s":0.011990585999910763,"user_s":0.0036309999999999997,"system_s":0.004764,"peak_memory_bytes":7151616.0,"exit_code":0.0,"suggest_s":0.00027409099993747077}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-3-f3de854f7e4d','f3de854f7e4d',NULL);
INSERT INTO runs VALUES(5,4,1,'search','{"SIZE":2}',1795068914.557656765,8,9,1795068914.6039013862,0.046366205999902376788,'completed',NULL,0.00019990399999999998881,NULL,NULL,'{"wall_s":0.012006718999828081,"user_s":0.008648,"system_s":0.0,"peak_memory_bytes":7168000.0,"exit_code":0.0,"suggest_s":0.00018857500003832683}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-4-b64641f224b9','b64641f224b9',NULL);
INSERT INTO runs VALUES(5,5,1,'search','{"SIZE":2}',1795068914.6575579643,10,11,1795068914.7036414146,0.042692771000020002247,'completed',NULL,0.0053519920000000007279,NULL,NULL,'{"wall_s":0.014397684999948979,"user_s":0.005999,"system_s":0.0,"peak_memory_bytes":7086080.0,"exit_code":0.0,"suggest_s":0.00015176700003394217}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-5-609140f35c95','609140f35c95',NULL);
INSERT INTO runs VALUES(5,6,0,'default','{"SIZE":1}',1795068914.7536475658,12,13,1795068914.7944009303,0.031676584000024377019,'completed',NULL,0.0069799650000000003011,NULL,NULL,'{"wall_s":0.00830979399984244,"user_s":0.0063549999999999995,"system_s":0.0,"peak_memory_bytes":7184384.0,"exit_code":0.0,"suggest_s":0.00023495900018133398}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-6-fbe9f27b604a','fbe9f27b604a',NULL);
INSERT INTO runs VALUES(5,7,2,'search','{"SIZE":3}',1795068914.8413698672,14,15,1795068914.8782844543,0.032844470999862096505,'completed',NULL,0.00017777300000000002063,NULL,NULL,'{"wall_s":0.001553611999952409,"user_s":0.007357,"system_s":0.0,"peak_memory_bytes":7176192.0,"exit_code":0.0,"suggest_s":0.0002916580001510738}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-7-1489a255e57c','1489a255e57c',NULL);
INSERT INTO runs VALUES(5,8,3,'search','{"SIZE":4}',1795068914.9375033378,16,17,1795068914.9836153983,0.039458567999872684595,'completed',NULL,0.00017687500000000000313,NULL,NULL,'{"wall_s":0.006077616999846214,"user_s":0.007836,"system_s":0.0,"peak_memory_bytes":7282688.0,"exit_code":0.0,"suggest_s":0.00029107999989719247}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-8-cc63b9e2ef0b','cc63b9e2ef0b',NULL);
INSERT INTO runs VALUES(5,9,2,'search','{"SIZE":3}',1795068915.0334880352,18,19,1795068915.0657527446,0.033525898999869241379,'completed',NULL,0.00014835400000000000973,NULL,NULL,'{"wall_s":0.010065530000019862,"user_s":0.008303,"system_s":0.0,"peak_memory_bytes":7131136.0,"exit_code":0.0,"suggest_s":0.00023753300001772004}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-9-ae6f7ec7b35e','ae6f7ec7b35e',NULL);
INSERT INTO runs VALUES(5,10,3,'search','{"SIZE":4}',1795068915.1208524703,20,21,1795068915.1582388878,0.027363085999922986957,'completed',NULL,0.00014205399999999999212,NULL,NULL,'{"wall_s":0.0038734879999537952,"user_s":0.005455,"system_s":0.0,"peak_memory_bytes":7147520.0,"exit_code":0.0,"suggest_s":0.00018647400020199711}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-10-d2d99437baf4','d2d99437baf4',NULL);
INSERT INTO runs VALUES(5,11,3,'search','{"SIZE":4}',1795068915.2013776302,22,23,1795068915.224995613,0.046753627000043707084,'completed',NULL,0.00018334800000000000706,NULL,NULL,'{"wall_s":0.01209917599999244,"user_s":0.009434999999999999,"system_s":0.0,"peak_memory_bytes":7168000.0,"exit_code":0.0,"suggest_s":0.00024991700001919526}','/home/ada/study/data/luthier/runs/8a43105b769148c4886be64156843b1f-11-f12f02a216d7','f12f02a216d7',NULL);
INSERT INTO runs VALUES(6,0,0,'default','{"SIZE":1}',1795068915.7722558975,0,1,1795068915.8028757571,0.016137436000008165137,'completed',NULL,0.00015948299999999997721,NULL,NULL,'{"wall_s":0.0034771009998166846,"user_s":0.003957,"system_s":0.002215,"peak_memory_bytes":7069696.0,"exit_code":0.0,"suggest_s":4.2897999946944765e-05}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-0-d08dfb30e912','d08dfb30e912',NULL);
INSERT INTO runs VALUES(6,1,1,'search','{"SIZE":3}',1795068915.8377985954,2,3,1795068915.866644144,0.027325295000082405749,'completed',NULL,0.00015749800000000000214,NULL,NULL,'{"wall_s":0.012061042000141242,"user_s":0.0038009999999999997,"system_s":0.005977,"peak_memory_bytes":7282688.0,"exit_code":0.0,"suggest_s":5.605899991678598e-05}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-1-ee7b8d1ead89','ee7b8d1ead89',NULL);
INSERT INTO runs VALUES(6,2,1,'verify','{"SIZE":3}',1795068915.9049699306,4,5,1795068915.941659689,0.047657614999934594379,'completed',NULL,0.00019564599999999997639,NULL,NULL,'{"wall_s":0.009866418000001431,"user_s":0.010336999999999999,"system_s":0.0,"peak_memory_bytes":7176192.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-2-3f629f8bacb7','3f629f8bacb7',NULL);
INSERT INTO runs VALUES(6,3,0,'verify','{"SIZE":1}',1795068915.9929966926,6,7,1795068916.0426697731,0.04747784100004537322,'completed',NULL,0.006954154000000000585,NULL,NULL,'{"wall_s":0.022169262000033996,"user_s":0.011078,"system_s":0.0,"peak_memory_bytes":7081984.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-3-f4a9bb3f340a','f4a9bb3f340a',NULL);
INSERT INTO runs VALUES(6,4,1,'verify','{"SIZE":3}',1795068916.1170322895,8,9,1795068916.1839921474,0.059308828999974139151,'completed',NULL,0.00017286400000000000376,NULL,NULL,'{"wall_s":0.04015292199983378,"user_s":0.0040279999999999995,"system_s":0.005924,"peak_memory_bytes":7176192.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-4-01634ab03ce9','01634ab03ce9',NULL);
INSERT INTO runs VALUES(6,5,0,'verify','{"SIZE":1}',1795068916.2484366893,10,11,1795068916.2896595001,0.037810131000014735036,'completed',NULL,0.00015091900000000000973,NULL,NULL,'{"wall_s":0.008867866999935359,"user_s":0.00437,"system_s":0.001643,"peak_memory_bytes":7249920.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-5-8fc929b859f3','8fc929b859f3',NULL);
INSERT INTO runs VALUES(6,6,1,'verify','{"SIZE":3}',1795068916.3371050358,12,13,1795068916.3918738365,0.075243392999936986598,'completed',NULL,0.00019479699999999999858,NULL,NULL,'{"wall_s":0.027933456000027945,"user_s":0.008733,"system_s":0.001851,"peak_memory_bytes":7122944.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-6-11b6a3688d61','11b6a3688d61',NULL);
INSERT INTO runs VALUES(6,7,0,'verify','{"SIZE":1}',1795068916.4850735664,14,15,1795068916.5187647343,0.039816295000036916462,'completed',NULL,0.00016341500000000000665,NULL,NULL,'{"wall_s":0.008613191999984338,"user_s":0.008461999999999999,"system_s":0.0,"peak_memory_bytes":7176192.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-7-4dd2ed5016e9','4dd2ed5016e9',NULL);
INSERT INTO runs VALUES(6,8,0,'verify','{"SIZE":1}',1795068916.5706925392,16,17,1795068916.6189761162,0.043446227000004000728,'completed',NULL,0.0001644799999999999973,NULL,NULL,'{"wall_s":0.012094447999970726,"user_s":0.004029,"system_s":0.006304,"peak_memory_bytes":7163904.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-8-e45c19b7c356','e45c19b7c356',NULL);
INSERT INTO runs VALUES(6,9,1,'verify','{"SIZE":3}',1795068916.6699290276,18,19,1795068916.7164213656,0.047451284000089799519,'completed',NULL,0.00016480800000000001177,NULL,NULL,'{"wall_s":0.002610630999924979,"user_s":0.004064,"system_s":0.002564,"peak_memory_bytes":7069696.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-9-87f8824fc2db','87f8824fc2db',NULL);
INSERT INTO runs VALUES(6,10,1,'verify','{"SIZE":3}',1795068916.7701580524,20,21,1795068916.8105564116,0.046582973000113270245,'completed',NULL,0.00016654000000000001484,NULL,NULL,'{"wall_s":0.021328880000055506,"user_s":0.008513999999999999,"system_s":0.0017059999999999998,"peak_memory_bytes":7147520.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-10-118f3cf976a8','118f3cf976a8',NULL);
INSERT INTO runs VALUES(6,11,0,'verify','{"SIZE":1}',1795068916.8852257729,22,23,1795068916.9367659092,0.023438697000074171228,'completed',NULL,0.00015681299999999997736,NULL,NULL,'{"wall_s":0.01064391899990369,"user_s":0.00614,"system_s":0.0,"peak_memory_bytes":7184384.0,"exit_code":0.0}','/home/ada/study/data/luthier/runs/e8ca71a4f2274b2a93eebe82f1da1d38-11-64320c9631b9','64320c9631b9',NULL);
CREATE TABLE users (
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	password_hash TEXT, 
	disabled BOOLEAN NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (name)
);
INSERT INTO users VALUES('ada','admin',1795068977.368995428,'$argon2id$v=19$m=65536,t=3,p=4$OMGCZZDUsduf3fxl0+sKww$/ZIKkGNps1RINjOc/VY+mJqIOzNIF9aG3+9oZY4inks',0);
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
	kill_requested BOOLEAN NOT NULL, 
	owner_host TEXT, 
	owner_pid INTEGER, 
	owner_started TEXT, 
	owner_claim TEXT, 
	seen_at DOUBLE, 
	unattended BOOLEAN NOT NULL, 
	author TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	request_key TEXT, 
	result TEXT, 
	settings TEXT NOT NULL, 
	source TEXT, jobs TEXT, periods TEXT, 
	CONSTRAINT uq_experiments_uid UNIQUE (uid), 
	CONSTRAINT uq_experiments_author_request_key UNIQUE (author, request_key)
);
INSERT INTO experiments VALUES(1,'0e649eec01fc442eb21ad5720cd5b674','sh',1795068855.0849850177,'finished',0,0,NULL,NULL,NULL,NULL,1795068856.6366660595,0,'',0,NULL,'{"ending":"the budget of 14 runs is spent, 6 of them kept for verification","verdict":"13.5x better than the default (the same in all 3 pairs of runs)","improved":true,"best":{"x":6,"mode":"a"},"value":2.0,"speedup":13.5,"low":13.5,"high":13.5,"kind":"ratio","cost_s":0.04040032299997165}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":8,"step":1,"scale":"linear","default":1,"unit":""},{"kind":"choice","name":"mode","values":["a","b"],"default":"a","ordered":false}],"constraints":[]},"command":{"argv":["sh","m.sh","{x}","{mode}"],"environment":{},"shell":false},"budget":14,"slots":1,"objectives":[{"measure":"regex:cost=(\\d+)","goal":"minimize"}],"optimizer":"auto","options":{},"impact_first":"off","seed":1,"first":[],"after":[],"transfer":"auto","verify_pairs":null,"resample":"auto","estimator":"auto","sentinels":0,"prune":null,"stop":[],"production_runs":null,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study"}',NULL,NULL,'[{"since":1795068855.1017473,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
INSERT INTO experiments VALUES(2,'33e53208a4f74fd5b0bac63fe7f1b8be','sh',1795068859.8956694603,'finished',0,0,NULL,NULL,NULL,NULL,1795068861.5287246703,0,'',0,NULL,'{"ending":"the budget of 12 runs is spent, 6 of them kept for verification","verdict":"13.5x better than the default (the same in all 3 pairs of runs)","improved":true,"best":{"x":6,"mode":"a"},"value":2.0,"speedup":13.5,"low":13.5,"high":13.5,"kind":"ratio","cost_s":0.028292011999951683}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":8,"step":1,"scale":"linear","default":1,"unit":""},{"kind":"choice","name":"mode","values":["a","b"],"default":"a","ordered":false}],"constraints":[]},"command":{"argv":["sh","m.sh","{x}","{mode}"],"environment":{},"shell":false},"earlier":{"kind":"model","share":0.1,"notes":["experiment 1 (sh): 2 of 2 parameters, 8 configurations"],"names":["mode","x"],"rows":[[0,-1.5727,false,"a",6],[0,-0.983,false,"a",7],[0,-0.4481,false,"b",6],[0,0.0313,false,"a",4],[0,0.0313,false,"a",8],[0,0.0313,false,"b",7],[0,1.207,false,"b",2],[0,1.7028,false,"a",1]]},"budget":12,"slots":1,"objectives":[{"measure":"regex:cost=(\\d+)","goal":"minimize"}],"optimizer":"auto","options":{},"impact_first":"off","seed":2,"first":[{"x":6,"mode":"a"},{"x":7,"mode":"a"},{"x":6,"mode":"b"}],"after":[1],"transfer":"auto","verify_pairs":null,"resample":"auto","estimator":"auto","sentinels":0,"prune":null,"stop":[],"production_runs":null,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study"}',NULL,NULL,'[{"since":1795068859.9165783,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
INSERT INTO experiments VALUES(3,'f011de97b1fa40d2bf82340bec5c3206','sh',1795068864.2896559238,'finished',0,0,NULL,NULL,NULL,NULL,1795068866.4141426086,0,'',0,NULL,'{"ending":"the budget of 12 runs is spent","verdict":"5 configurations on the Pareto front, 0 of them better than the default in every objective (not verified)","improved":false,"best":{"x":1,"mode":"a"},"value":27.0,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.07146827900021435}','{"space":{"parameters":[{"kind":"integer","name":"x","low":1,"high":8,"step":1,"scale":"linear","default":1,"unit":""},{"kind":"choice","name":"mode","values":["a","b"],"default":"a","ordered":false}],"constraints":[]},"command":{"argv":["sh","m.sh","{x}","{mode}"],"environment":{},"shell":false},"budget":12,"slots":1,"objectives":[{"measure":"regex:cost=(\\d+)","goal":"minimize"},{"measure":"regex:size=(\\d+)","goal":"maximize"}],"optimizer":"pareto","options":{},"impact_first":"off","seed":3,"first":[],"after":[],"transfer":"auto","verify_pairs":null,"resample":"auto","estimator":"auto","sentinels":0,"prune":null,"stop":[],"production_runs":null,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study"}',NULL,NULL,'[{"since":1795068864.3159971,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
INSERT INTO experiments VALUES(4,'fab49033a4204768bd1db83a4421fe0d','sh',1795068869.0057239531,'finished',0,0,NULL,NULL,NULL,NULL,1795068877.909239769,0,'',0,NULL,'{"ending":"every configuration has been tried","verdict":"not verified: 1 pair of runs of default and best configuration are too few for a confidence interval","improved":false,"best":{"d":2},"value":0.025505595000026915,"speedup":1.2776729576381818,"low":null,"high":null,"kind":"ratio","cost_s":0.8686713160002455}','{"space":{"parameters":[{"kind":"integer","name":"d","low":1,"high":4,"step":1,"scale":"linear","default":1,"unit":""}],"constraints":[]},"command":{"argv":["sh","-c","sleep 0.0{d}"],"environment":{},"shell":false},"refinements":[{"events":32,"runs":16}],"budget":22,"slots":1,"objectives":[{"measure":"wall","goal":"minimize"}],"optimizer":"auto","options":{},"impact_first":"off","seed":4,"first":[],"after":[],"transfer":"auto","verify_pairs":null,"resample":"auto","estimator":"auto","sentinels":0,"prune":null,"stop":[],"production_runs":null,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study"}',NULL,NULL,'[{"since":1795068869.0223026,"until":1795068872.2609313,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}},{"since":1795068875.7354524,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
INSERT INTO experiments VALUES(5,'8a43105b769148c4886be64156843b1f','buffers: search',1795068914.1145224571,'finished',0,0,NULL,NULL,NULL,NULL,1795068915.7064023017,0,'',0,NULL,'{"ending":"the budget of 12 runs is spent","verdict":"not verified: the best value may be due to chance","improved":false,"best":{"SIZE":3},"value":0.00017777300000000002,"speedup":null,"low":null,"high":null,"kind":null,"cost_s":0.4567639059996509}','{"space":{"parameters":[{"kind":"choice","name":"SIZE","values":[1,2,3,4],"default":1,"ordered":true}],"constraints":[]},"command":{"component":{"header":"\nLD_PRELOAD= rm -rf /home/ada/study/io-tuning/run\nLD_PRELOAD= cp -R /home/ada/study/io-tuning/input /home/ada/study/io-tuning/run\ncd /home/ada/study/io-tuning/run","parameters":{"SIZE":{"values":[1,2,3,4],"type":"int","default":1,"env_var":true}}},"component_name":"buffers","application":"#!/bin/sh\n/home/ada/study/io-tuning/kernel/program 10\n","name":"script","where":"local"},"pipeline":{"steps":[{"name":"kernel","lines":["the search runs the I/O kernel, verified: same I/O as the application (6 operations, 1.655 KiB, 1 process); application 0.10 s, kernel 0.02 s (6.0x faster)"],"seconds":1.7094201689999409}],"kernel":{"is_used":true,"sentence":"the search runs the I/O kernel, verified: same I/O as the application (6 operations, 1.655 KiB, 1 process); application 0.10 s, kernel 0.02 s (6.0x faster)","folder":"/home/ada/study/io-tuning","reduction":null},"application":{"component":{"header":"\nLD_PRELOAD= rm -rf /home/ada/study/io-tuning/run\nLD_PRELOAD= cp -R /home/ada/study/io-tuning/input /home/ada/study/io-tuning/run\ncd /home/ada/study/io-tuning/run","parameters":{"SIZE":{"values":[1,2,3,4],"type":"int","default":1,"env_var":true}}},"component_name":"buffers","application":"#!/bin/sh\n/home/ada/study/io-tuning/application/program 10\n","name":"script","where":"local"},"pairs":5,"searched":null},"budget":12,"slots":1,"objectives":[{"measure":"io:time","goal":"minimize"}],"optimizer":"auto","options":{},"impact_first":"auto","seed":1,"first":[],"after":[],"transfer":"auto","verify_pairs":0,"resample":"auto","estimator":"auto","sentinels":0,"prune":null,"stop":["learned"],"production_runs":1000,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study/io-tuning"}',NULL,NULL,'[{"since":1795068914.1482131,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
INSERT INTO experiments VALUES(6,'e8ca71a4f2274b2a93eebe82f1da1d38','buffers: verification',1795068915.7523722648,'finished',0,0,NULL,NULL,NULL,NULL,1795068916.9854023456,0,'',0,NULL,'{"ending":"the budget of 12 runs is spent, 10 of them kept for verification","verdict":"no improvement proven: the best configuration is 0.247x to 14.5x as good as the default (95 % confidence, 5 pairs)","improved":false,"best":{"SIZE":1},"value":0.000163415,"speedup":0.9453385320251761,"low":0.24734974932570897,"high":14.52435275655681,"kind":"ratio","cost_s":0.5116960160003146}','{"space":{"parameters":[{"kind":"choice","name":"SIZE","values":[1,2,3,4],"default":1,"ordered":true}],"constraints":[]},"command":{"component":{"header":"\nLD_PRELOAD= rm -rf /home/ada/study/io-tuning/run\nLD_PRELOAD= cp -R /home/ada/study/io-tuning/input /home/ada/study/io-tuning/run\ncd /home/ada/study/io-tuning/run","parameters":{"SIZE":{"values":[1,2,3,4],"type":"int","default":1,"env_var":true}}},"component_name":"buffers","application":"#!/bin/sh\n/home/ada/study/io-tuning/application/program 10\n","name":"script","where":"local"},"pipeline":{"steps":[{"name":"kernel","lines":["the search runs the I/O kernel, verified: same I/O as the application (6 operations, 1.655 KiB, 1 process); application 0.10 s, kernel 0.02 s (6.0x faster)"],"seconds":1.7094201689999409},{"name":"search","lines":["experiment 5, on the I/O kernel, not verified: 3.585 ms -> 0.1778 ms (12 of 12 runs, 0.5 s of run time)","tuned first, after 3 configurations: all 1 parameters: no differences between configurations are known yet","ended: the budget of 12 runs is spent"],"seconds":0.4567639059996509}],"kernel":{"is_used":true,"sentence":"the search runs the I/O kernel, verified: same I/O as the application (6 operations, 1.655 KiB, 1 process); application 0.10 s, kernel 0.02 s (6.0x faster)","folder":"/home/ada/study/io-tuning","reduction":null},"application":null,"pairs":0,"searched":{"uid":"8a43105b769148c4886be64156843b1f","number":5,"runs":12,"program":"the I/O kernel","over_time":[[1.7407758520000698,0.0],[1.7814317470001697,0.11534178075921561],[1.8221239430001788,0.11276593493507475],[1.8655028630000743,0.11014376556332942],[1.9118690689999767,0.10747258446284459],[1.9545618399999967,0.10512510056985477],[1.986238424000021,0.10344856262834931],[2.019082894999883,0.10176576232151772],[2.058541462999756,0.09981509417866138],[2.092067361999625,0.09856622867196041],[2.119430447999548,0.097472030844413],[2.1661840749995918,0.09536825258030712]]}},"budget":12,"slots":1,"objectives":[{"measure":"io:time","goal":"minimize"}],"optimizer":"random","options":{},"impact_first":"off","seed":1,"first":[{"SIZE":3}],"after":[],"transfer":"auto","verify_pairs":5,"resample":"once","estimator":"auto","sentinels":0,"prune":null,"stop":[],"production_runs":1000,"timeout_s":null,"time_limit_s":null,"cwd":"/home/ada/study/io-tuning"}',NULL,NULL,'[{"since":1795068915.7638261,"until":null,"machine":{"host":"node1","cpu":"Intel(R) Xeon(R) Processor","cores":2,"version":"0.1.0"}}]');
CREATE TABLE components (
	name TEXT NOT NULL, 
	description TEXT NOT NULL, 
	CONSTRAINT pk_components PRIMARY KEY (name)
);
INSERT INTO components VALUES('buffers',replace('components:\n  buffers:\n    parameters:\n      SIZE:\n        values:\n        - 1\n        - 2\n        - 3\n        - 4\n        type: int\n        default: 1\n        env_var: true\n','\n',char(10)));
CREATE TABLE workers (
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	started TEXT NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	CONSTRAINT pk_workers PRIMARY KEY (host, pid, started)
);
CREATE TABLE online_sessions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uid TEXT NOT NULL, 
	name TEXT NOT NULL, 
	author TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	status TEXT NOT NULL, 
	seen_at DOUBLE, 
	settings TEXT NOT NULL, 
	"view" TEXT, 
	CONSTRAINT uq_online_sessions_uid UNIQUE (uid), 
	CONSTRAINT uq_online_sessions_author_name UNIQUE (author, name)
);
INSERT INTO online_sessions VALUES(1,'41516aa90231444aaba49ca020d8ceeb','loop','local',0,1795068938.3059585094,'running',1795068941.6500799655,'{"space":{"parameters":[{"kind":"integer","name":"block","low":1,"high":32,"step":1,"scale":"linear","default":32,"unit":""},{"kind":"choice","name":"order","values":["rows","columns"],"default":"rows","ordered":false}],"constraints":[]},"strategy":"auto","samples":"adaptive","estimator":"minimum","goal":"minimize","baseline":3,"watch":true,"seed":0}','{"phase":"converged","search":1,"strategy":"auto","goal":"minimize","best":{"config":{"block":8,"order":"rows"},"value":0.00026784700003190665,"samples":2},"default":{"config":{"block":32,"order":"rows"},"value":0.0050851500000135275,"samples":3},"clients":[],"more_clients":0,"steps":60,"total":0.16164275400092265,"compared_steps":60,"compared_total":0.16164275400092265,"default_total":0.593907269999363,"default_step":0.009898454499989384,"defaults":[[1,0.009898454499989384]],"history":[[1,0.011093092999999499],[2,0.0050851500000135275],[3,0.00870381599997927],[4,0.0021127730001353484],[5,0.010102440000082424],[6,0.003878132000181722],[7,0.06138426100005745],[8,0.0035357589999875927],[9,0.0006988279999404767],[10,0.0017000630000438832],[11,0.0015050070001052518],[12,0.0016852300000209652],[13,0.0032992369999647053],[14,0.008004371999959403],[15,0.0037267340001108096],[16,0.004579215999910957],[17,0.007628605000036259],[18,0.0016938690000642964],[19,0.0014745500000117318],[20,0.0014994159998877876],[21,0.00048793899986776523],[22,0.0008826709999993909],[23,0.00027260199999545875],[24,0.00048676300002625794],[25,0.0002794309998535027],[26,0.0006772710000859661],[27,0.0004708550000032119],[28,0.0002713139999741543],[29,0.00027450099992165633],[30,0.0002700269999422744],[31,0.00027576100001169834],[32,0.0002574830000412476],[33,0.0016599409998434567],[34,0.0002709259999846836],[35,0.00048486500008948497],[36,0.0004778340000939352],[37,0.00026784700003190665],[38,0.0004721770001197001],[39,0.00027691300010701525],[40,0.00028029600002810184],[41,0.00027038200005335966],[42,0.0002768340000329772],[43,0.0002820720001182053],[44,0.00026918100002149004],[45,0.00027791000002252986],[46,0.0003008900000622816],[47,0.0002782280000701576],[48,0.00027315700003782695],[49,0.00026851299980990007],[50,0.00027266300003248034],[51,0.00027110399992125167],[52,0.00026806000005308306],[53,0.00027375500008020026],[54,0.003954131000000416],[55,0.00027065300014328386],[56,0.0002692079999633279],[57,0.00026900400007434655],[58,0.0002668189999894821],[59,0.0002695420000691229],[60,0.00027267999985269853]],"points":[{"config":{"block":8,"order":"rows"},"value":0.0002574830000412476,"samples":10},{"config":{"block":8,"order":"columns"},"value":0.0004708550000032119,"samples":2},{"config":{"block":7,"order":"rows"},"value":0.0004778340000939352,"samples":2},{"config":{"block":9,"order":"rows"},"value":0.00048486500008948497,"samples":2},{"config":{"block":10,"order":"rows"},"value":0.0006772710000859661,"samples":1},{"config":{"block":6,"order":"rows"},"value":0.0006988279999404767,"samples":1},{"config":{"block":2,"order":"rows"},"value":0.0014745500000117318,"samples":5},{"config":{"block":1,"order":"rows"},"value":0.0016852300000209652,"samples":3},{"config":{"block":17,"order":"rows"},"value":0.0021127730001353484,"samples":1},{"config":{"block":1,"order":"columns"},"value":0.0032992369999647053,"samples":1},{"config":{"block":12,"order":"rows"},"value":0.0035357589999875927,"samples":1},{"config":{"block":26,"order":"rows"},"value":0.003878132000181722,"samples":1},{"config":{"block":32,"order":"rows"},"value":0.0050851500000135275,"samples":3},{"config":{"block":32,"order":"columns"},"value":0.010102440000082424,"samples":1}],"changes":[],"reference":[0.00027691300010701525,0.00028029600002810184,0.00027038200005335966,0.0002768340000329772,0.0002820720001182053,0.00026918100002149004,0.00027791000002252986,0.0003008900000622816,0.0002782280000701576,0.00027315700003782695,0.00026851299980990007,0.00027266300003248034,0.00027110399992125167,0.00026806000005308306,0.00027375500008020026,0.003954131000000416,0.00027065300014328386,0.0002692079999633279,0.00026900400007434655,0.0002668189999894821,0.0002695420000691229,0.00027267999985269853],"service":"ea48ac43c86b406393fb465e5db652ca"}');
CREATE TABLE online_samples (
	session_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	search INTEGER NOT NULL, 
	client TEXT NOT NULL, 
	config TEXT NOT NULL, 
	value DOUBLE, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_online_samples PRIMARY KEY (session_id, number), 
	CONSTRAINT fk_online_samples_session_id FOREIGN KEY(session_id) REFERENCES online_sessions (id)
);
INSERT INTO online_samples VALUES(1,1,1,'node1/3305','{"block":32,"order":"rows"}',0.011093092999999498715,1795068938.3392162322);
INSERT INTO online_samples VALUES(1,2,1,'node1/3305','{"block":32,"order":"rows"}',0.0050851500000135274603,1795068938.3448340892);
INSERT INTO online_samples VALUES(1,3,1,'node1/3305','{"block":32,"order":"rows"}',0.0087038159999792696908,1795068938.3552503585);
INSERT INTO online_samples VALUES(1,4,1,'node1/3305','{"block":17,"order":"rows"}',0.0021127730001353484112,1795068938.3582329749);
INSERT INTO online_samples VALUES(1,5,1,'node1/3305','{"block":32,"order":"columns"}',0.010102440000082424376,1795068938.3692119121);
INSERT INTO online_samples VALUES(1,6,1,'node1/3305','{"block":26,"order":"rows"}',0.0038781320001817221054,1795068938.3739182949);
INSERT INTO online_samples VALUES(1,7,1,'node1/3305','{"block":12,"order":"rows"}',0.0035357589999875926878,1795068938.4432156086);
INSERT INTO online_samples VALUES(1,8,1,'node1/3305','{"block":6,"order":"rows"}',0.00069882799994047672953,1795068938.4540290832);
INSERT INTO online_samples VALUES(1,9,1,'node1/3305','{"block":1,"order":"rows"}',0.0017000630000438832212,1795068938.4612476825);
INSERT INTO online_samples VALUES(1,10,1,'node1/3305','{"block":2,"order":"rows"}',0.0015050070001052517909,1795068938.4670095443);
INSERT INTO online_samples VALUES(1,11,1,'node1/3305','{"block":1,"order":"rows"}',0.0016852300000209652353,1795068938.471610546);
INSERT INTO online_samples VALUES(1,12,1,'node1/3305','{"block":1,"order":"columns"}',0.0032992369999647053191,1795068938.4778542518);
INSERT INTO online_samples VALUES(1,13,1,'node1/3305','{"block":2,"order":"rows"}',0.0037267340001108095748,1795068938.5435094833);
INSERT INTO online_samples VALUES(1,14,1,'node1/3305','{"block":2,"order":"rows"}',0.0076286050000362592982,1795068938.5719692706);
INSERT INTO online_samples VALUES(1,15,1,'node1/3305','{"block":1,"order":"rows"}',0.001693869000064296415,1795068938.5811879634);
INSERT INTO online_samples VALUES(1,16,1,'node1/3305','{"block":2,"order":"rows"}',0.001474550000011731754,1795068938.5941286087);
INSERT INTO online_samples VALUES(1,17,1,'node1/3305','{"block":2,"order":"rows"}',0.0014994159998877876205,1795068938.5988280772);
INSERT INTO online_samples VALUES(1,18,1,'node1/3305','{"block":7,"order":"rows"}',0.00048793899986776523292,1795068938.6028113365);
INSERT INTO online_samples VALUES(1,19,1,'node1/3305','{"block":8,"order":"rows"}',0.00088267099999939091503,1795068938.607204914);
INSERT INTO online_samples VALUES(1,20,1,'node1/3305','{"block":8,"order":"rows"}',0.00027260199999545875471,1795068938.6123645304);
INSERT INTO online_samples VALUES(1,21,1,'node1/3305','{"block":9,"order":"rows"}',0.00048676300002625794149,1795068938.6162154674);
INSERT INTO online_samples VALUES(1,22,1,'node1/3305','{"block":8,"order":"rows"}',0.00027943099985350272618,1795068938.6228122711);
INSERT INTO online_samples VALUES(1,23,1,'node1/3305','{"block":10,"order":"rows"}',0.00067727100008596607949,1795068938.6267521381);
INSERT INTO online_samples VALUES(1,24,1,'node1/3305','{"block":8,"order":"columns"}',0.00047085500000321189872,1795068938.6321780681);
INSERT INTO online_samples VALUES(1,25,1,'node1/3305','{"block":8,"order":"rows"}',0.00027131399997415428515,1795068938.6353552341);
INSERT INTO online_samples VALUES(1,26,1,'node1/3305','{"block":8,"order":"rows"}',0.00027450099992165633011,1795068938.6385064124);
INSERT INTO online_samples VALUES(1,27,1,'node1/3305','{"block":8,"order":"rows"}',0.00027002699994227441493,1795068938.6436080932);
INSERT INTO online_samples VALUES(1,28,1,'node1/3305','{"block":8,"order":"rows"}',0.00027576100001169834285,1795068938.6515333652);
INSERT INTO online_samples VALUES(1,29,1,'node1/3305','{"block":8,"order":"rows"}',0.00025748300004124757833,1795068938.6587908268);
INSERT INTO online_samples VALUES(1,30,1,'node1/3305','{"block":8,"order":"rows"}',0.00027092599998468358535,1795068938.6733934879);
INSERT INTO online_samples VALUES(1,31,1,'node1/3305','{"block":9,"order":"rows"}',0.00048486500008948496542,1795068938.6741137505);
INSERT INTO online_samples VALUES(1,32,1,'node1/3305','{"block":7,"order":"rows"}',0.00047783400009393517393,1795068938.674817562);
INSERT INTO online_samples VALUES(1,33,1,'node1/3305','{"block":8,"order":"rows"}',0.00026784700003190664574,1795068938.6753439903);
INSERT INTO online_samples VALUES(1,34,1,'node1/3305','{"block":8,"order":"columns"}',0.00047217700011970009654,1795068938.6765985489);
CREATE TABLE explanations (
	experiment_id INTEGER NOT NULL, 
	content TEXT NOT NULL, 
	CONSTRAINT pk_explanations PRIMARY KEY (experiment_id), 
	CONSTRAINT fk_explanations_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id)
);
INSERT INTO explanations VALUES(4,'{"at":1795068896.1861224,"default":{"config":{"d":1},"quantities":{"wall_s":0.027426445,"user_s":0.004761,"system_s":0.008549,"peak_memory_bytes":15593472,"minor_page_faults":1607,"major_page_faults":0,"voluntary_switches":10,"involuntary_switches":4,"system_calls":313.0,"disk_read_bytes":0,"disk_write_bytes":16384,"hdf5_reads":0.0,"hdf5_read_bytes":0.0,"hdf5_writes":0.0,"hdf5_write_bytes":0.0,"hdf5_opens":0.0,"hdf5_seeks":0.0,"hdf5_syncs":0.0,"hdf5_read_s":0.0,"hdf5_write_s":0.0,"hdf5_other_s":0.0,"mpiio_reads":0.0,"mpiio_read_bytes":0.0,"mpiio_writes":0.0,"mpiio_write_bytes":0.0,"mpiio_opens":0.0,"mpiio_seeks":0.0,"mpiio_syncs":0.0,"mpiio_read_s":0.0,"mpiio_write_s":0.0,"mpiio_other_s":0.0,"posix_reads":0.0,"posix_read_bytes":0.0,"posix_writes":0.0,"posix_write_bytes":0.0,"posix_opens":0.0,"posix_seeks":0.0,"posix_syncs":0.0,"posix_read_s":0.0,"posix_write_s":0.0,"posix_other_s":1.735e-06}},"best":{"config":{"d":2},"quantities":{"wall_s":0.028149319000000003,"user_s":0.006913,"system_s":0.007672999999999999,"peak_memory_bytes":15835136,"minor_page_faults":1607,"major_page_faults":0,"voluntary_switches":11,"involuntary_switches":7,"system_calls":313.0,"disk_read_bytes":0,"disk_write_bytes":16384,"hdf5_reads":0.0,"hdf5_read_bytes":0.0,"hdf5_writes":0.0,"hdf5_write_bytes":0.0,"hdf5_opens":0.0,"hdf5_seeks":0.0,"hdf5_syncs":0.0,"hdf5_read_s":0.0,"hdf5_write_s":0.0,"hdf5_other_s":0.0,"mpiio_reads":0.0,"mpiio_read_bytes":0.0,"mpiio_writes":0.0,"mpiio_write_bytes":0.0,"mpiio_opens":0.0,"mpiio_seeks":0.0,"mpiio_syncs":0.0,"mpiio_read_s":0.0,"mpiio_write_s":0.0,"mpiio_other_s":0.0,"posix_reads":0.0,"posix_read_bytes":0.0,"posix_writes":0.0,"posix_write_bytes":0.0,"posix_opens":0.0,"posix_seeks":0.0,"posix_syncs":0.0,"posix_read_s":0.0,"posix_write_s":0.0,"posix_other_s":3.109e-06}},"notes":[]}');
CREATE TABLE job_records (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	experiment_id INTEGER, 
	change INTEGER NOT NULL, 
	is_active BOOLEAN NOT NULL, 
	submitted_at DOUBLE NOT NULL, 
	utc_offset_s INTEGER NOT NULL, 
	nodes INTEGER NOT NULL, 
	user_name TEXT NOT NULL, 
	name TEXT NOT NULL, 
	program TEXT NOT NULL, 
	command TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	component TEXT NOT NULL, 
	config TEXT NOT NULL, 
	environment TEXT NOT NULL, 
	options TEXT NOT NULL, 
	measure TEXT NOT NULL, 
	default_value DOUBLE NOT NULL, 
	best_value DOUBLE NOT NULL, 
	speedup DOUBLE NOT NULL, 
	withdrawn TEXT, 
	CONSTRAINT uq_job_records_experiment_id UNIQUE (experiment_id), 
	CONSTRAINT fk_job_records_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id)
);
INSERT INTO job_records VALUES(1,6,1,1,1795039200.0,0,4,'ada','stencil','stencil','srun ./stencil -n 4',5.5,'buffers','{"SIZE":3}','{"SIZE":"3"}','[]','wall',12.5,9.25,1.3500000000000000888,NULL);
CREATE TABLE job_record_changes (
	id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	CONSTRAINT pk_job_record_changes PRIMARY KEY (id)
);
INSERT INTO job_record_changes VALUES(1,1);
CREATE TABLE examined_experiments (
	experiment_id INTEGER NOT NULL, 
	CONSTRAINT pk_examined_experiments PRIMARY KEY (experiment_id), 
	CONSTRAINT fk_examined_experiments_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id)
);
CREATE TABLE learnt (
	name TEXT NOT NULL, 
	content TEXT NOT NULL, 
	CONSTRAINT pk_learnt PRIMARY KEY (name)
);
CREATE TABLE submissions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DOUBLE NOT NULL, 
	utc_offset_s INTEGER NOT NULL, 
	author TEXT NOT NULL, 
	decision TEXT NOT NULL, 
	record_id INTEGER, 
	experiment_id INTEGER, 
	score DOUBLE, 
	confirmed BOOLEAN, 
	job_id TEXT, 
	state TEXT, 
	elapsed_s DOUBLE, 
	nodes INTEGER NOT NULL, 
	user_name TEXT NOT NULL, 
	name TEXT NOT NULL, 
	program TEXT NOT NULL, 
	component TEXT, 
	command TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	by_field TEXT, 
	environment TEXT NOT NULL
);
INSERT INTO submissions VALUES(1,1795039200.0,0,'ada','set',1,6,0.93000000000000004884,NULL,NULL,NULL,NULL,4,'ada','stencil','stencil','buffers','srun ./stencil -n 4','sets SIZE=3 as found by experiment 6 (similarity 0.93)','{"user":1.0,"name":0.8}','{"SIZE":"3"}');
INSERT INTO submissions VALUES(2,1795039200.0,0,'bob','none',NULL,NULL,NULL,NULL,NULL,NULL,NULL,4,'ada','stencil','stencil',NULL,'srun ./stencil -n 4','no tuned job is similar enough',NULL,'{}');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('experiments',6);
INSERT INTO sqlite_sequence VALUES('online_sessions',1);
INSERT INTO sqlite_sequence VALUES('job_records',1);
INSERT INTO sqlite_sequence VALUES('submissions',2);
CREATE INDEX ix_passes_user_name ON passes (user_name);
CREATE INDEX ix_experiments_status ON experiments (status);
CREATE INDEX ix_job_records_change ON job_records (change);
CREATE INDEX ix_submissions_author ON submissions (author, id);
CREATE INDEX ix_submissions_record_id ON submissions (record_id, id);
CREATE INDEX ix_submissions_decision ON submissions (decision, at);
COMMIT;
