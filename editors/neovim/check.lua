-- Waits for the diagnostics of the file that is open, prints them and leaves. Run by ../check.
local found = vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)
for _, diagnostic in ipairs(vim.diagnostic.get(0)) do
  io.stdout:write(('%d:%d: %s\n'):format(diagnostic.lnum + 1, diagnostic.col + 1, diagnostic.message))
end
vim.cmd(found and 'quitall!' or 'cquit')
