-- What the plug-in thinks of the same: lua plugin_driver.lua cli_filter.lua < LINES
local file = assert(io.open(arg[1], "rb"))
local text = file:read("*a"):gsub("return luthier%s*$", "return { may_set = may_set, read = read }")
file:close()
local plugin = assert((loadstring or load)(text))()

local function bytes(word)
  return (word:gsub("..", function(two) return string.char(tonumber(two, 16)) end))
end

for line in io.lines() do
  local kind, first, second = line:match("^(%a) (%x*) ?(%x*)$")
  local found
  if kind == "v" then found = plugin.may_set(bytes(first), bytes(second)) else found = plugin.read(bytes(first)) end
  print(found and "1" or "0")
end
