-- luthier: marks jobs that got a configuration (luthier slurm install).
-- It runs inside slurmctld, while that holds a lock: it only looks at the job, and asks nobody.

local luthier = {}

local function submit(job)
  local environment = job.environment
  if job.script == nil or environment == nil then return end
  local number = environment["LUTHIER_DECISION"]
  if number == nil or not number:match("^%d+$") or #number > 10 then return end
  if job.admin_comment == nil then job.admin_comment = "luthier:" .. number end
  -- Without this, srun in the job would set the variables again, also those that the script has changed meanwhile.
  local export = environment["SLURM_EXPORT_ENV"]
  if export ~= nil and export:sub(1, 21 + #number) == "ALL,LUTHIER_DECISION=" .. number then
    environment["SLURM_EXPORT_ENV"] = "ALL"
  end
end

-- Call this in slurm_job_submit, if you have a job_submit.lua of your own.
function luthier.job_submit(job)
  pcall(submit, job)
end

return luthier
