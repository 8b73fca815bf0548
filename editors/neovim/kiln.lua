-- Starts `kiln lsp` for YAML files: `dofile` this file in init.lua, or put it into the folder `plugin` of the configuration.
-- Neovim 0.7 or newer. Set vim.g.kiln_command before, to start another command.

local group = vim.api.nvim_create_augroup('kiln', {})

vim.api.nvim_create_autocmd({ 'BufRead', 'BufNewFile' }, {
  group = group,
  pattern = '*.template',
  callback = function() vim.bo.filetype = 'yaml' end,
})

local client -- of Neovim 0.7, which does not find a client that is running

vim.api.nvim_create_autocmd('FileType', {
  group = group,
  pattern = 'yaml',
  callback = function(args)
    local file = vim.api.nvim_buf_get_name(args.buf)
    if file == '' then return end
    local config = {
      name = 'kiln',
      cmd = vim.g.kiln_command or { 'kiln', 'lsp' },
      root_dir = vim.fn.fnamemodify(file, ':p:h'),
    }
    if vim.lsp.start then
      vim.lsp.start(config, { bufnr = args.buf })
      return
    end
    if not (client and vim.lsp.get_client_by_id(client)) then client = vim.lsp.start_client(config) end
    if client then vim.lsp.buf_attach_client(args.buf, client) end
  end,
})
