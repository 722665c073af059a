-- luthier: asks the tuning server which configuration a job gets (luthier slurm install).
-- It runs inside sbatch, as the user. Whatever fails here, the job is submitted as it is.

local FOLDER = "@FOLDER@"
local luthier = {}

-- Written by luthier slurm install from the one list of luthier; `*` is any text.
local RULES = @RULES@

local function is_off(text)
  local said = (text or ""):lower()
  return said == "off" or said == "0" or said == "no" or said == "false"
end

-- The pairs of a request as NUL-terminated texts; a text with a NUL in it cannot be asked about.
local function packed(pairs_)
  local parts = {}
  for _, pair in ipairs(pairs_) do
    if pair[2]:find("\0", 1, true) then return nil end
    parts[#parts + 1] = pair[1] .. "\0" .. pair[2] .. "\0"
  end
  return table.concat(parts)
end

local function request_of(options)
  local argv, wrap = options["argv"], options["wrap"]
  local request = {}
  if type(argv) == "table" and type(argv[1]) == "string" then
    request[1] = { "script", argv[1] }
    request[2] = { "file", argv[1] }
  elseif type(wrap) == "string" and wrap ~= "" then
    request[1] = { "text", "#!/bin/sh\n" .. wrap .. "\n" }
    request[2] = { "file", "wrap" }
  else
    return nil -- a script from standard input, which sbatch has read already
  end
  if type(options["job-name"]) == "string" then request[#request + 1] = { "name", options["job-name"] } end
  if type(options["nodes"]) == "string" then
    request[#request + 1] = { "option", "--nodes=" .. options["nodes"] }
  end
  return packed(request)
end

-- The command line has only the folder of the installation and the name of a temporary file: no text of the user.
local function ask(request)
  local name = os.tmpname()
  if not name:match("^[%w_./-]+$") then return nil end
  local file = io.open(name, "wb")
  if file == nil then return nil end
  local is_written = file:write(request)
  is_written = file:close() and is_written
  local answer
  if is_written then
    local pipe = io.popen("exec '" .. FOLDER .. "/luthier-ask' '" .. FOLDER .. "/luthier-submit.conf' '" .. name
      .. "' 2>/dev/null", "r")
    if pipe ~= nil then
      answer = pipe:read(65536)
      pipe:close()
    end
  end
  os.remove(name)
  return answer
end

-- Ranges of letters, not classes like %a: those depend on the locale of sbatch.
local function may_set(name, value)
  if not name:match("^[A-Za-z_][A-Za-z0-9_]*$") or #name > RULES.name then return false end
  if #value > RULES.value or not value:match("^[A-Za-z0-9" .. RULES.signs .. "]*$") then return false end
  for _, refused in ipairs(RULES.refused) do
    if name:upper():match("^" .. refused:gsub("%*", ".*") .. "$") then return false end
  end
  return os.getenv(name) == nil
end

-- The decision in an answer; nil unless every line is as it must be.
local function read(answer)
  local decision = { variables = {} }
  local lines = {}
  for line in answer:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  if lines[1] ~= "luthier 1" or answer:sub(-5) ~= "\nend\n" then return nil end
  for i = 2, #lines - 1 do
    local key, value = lines[i]:match("^(%l+) (.*)$")
    if key == "decision" and value:match("^%d+$") and #value <= 10 then
      decision.number = value
    elseif key == "set" then
      local name, text = value:match("^([^=]*)=(.*)$")
      if name == nil or not may_set(name, text) or #decision.variables >= RULES.most then return nil end
      decision.variables[#decision.variables + 1] = name .. "=" .. text
    elseif key == "say" and not value:find("[^ -~]") then -- printable ASCII: it goes to a terminal
      decision.line = value
    else
      return nil
    end
  end
  return decision.number and decision or nil
end

local function apply(options, decision)
  if #decision.variables > 0 then
    local export = options["export"]
    if type(export) ~= "string" or export == "" then export = "ALL" end
    -- LUTHIER_DECISION comes first: job_submit.lua knows by it that the option was not the user's.
    local added = "LUTHIER_DECISION=" .. decision.number .. "," .. table.concat(decision.variables, ",")
    options["export"] = export:upper() == "ALL" and "ALL," .. added or export .. "," .. added
  end
  if type(options["comment"]) ~= "string" or options["comment"] == "" then
    options["comment"] = "luthier:" .. decision.number
  end
  if decision.line ~= nil then io.stderr:write("luthier: " .. decision.line .. "\n") end
end

local function pre_submit(options)
  if options["type"] ~= "sbatch" or is_off(os.getenv("LUTHIER")) then return end
  if os.getenv("LUTHIER_DECISION") ~= nil and os.getenv("SLURM_JOB_ID") == nil then return end -- luthier submit asked
  local name, comment, export = options["job-name"], options["comment"], options["export"]
  if type(name) == "string" and name:find("%-luthier%-%w+$") then return end -- a run of an experiment
  if type(comment) == "string" and comment:lower():find("luthier:off", 1, true) then return end
  if type(export) == "string" and export ~= "" and not (export:upper() .. ","):find("^ALL,") then return end
  local request = request_of(options)
  local answer = request and ask(request)
  local decision = answer and read(answer)
  if decision then apply(options, decision) end
end

-- Call this in slurm_cli_pre_submit, if you have a cli_filter.lua of your own.
function luthier.pre_submit(options)
  pcall(pre_submit, options)
end

return luthier
