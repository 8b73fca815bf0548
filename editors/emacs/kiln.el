;;; kiln.el --- Start kiln lsp for YAML files  -*- lexical-binding: t; -*-

;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; Load this file in your init file.  Emacs 28 needs eglot and yaml-mode from an archive or from Debian's packages elpa-eglot
;; and elpa-yaml-mode; newer ones have eglot and yaml-ts-mode themselves.

;;; Code:

(require 'eglot)

(defgroup kiln nil "OpenStack Heat templates with kiln lsp." :group 'tools)

(defcustom kiln-command '("kiln" "lsp")
  "The command that starts the language server."
  :type '(repeat string))

(defun kiln-contact (&optional _interactive)
  "Give eglot the command of the language server."
  kiln-command)

(add-to-list 'eglot-server-programs '((yaml-mode yaml-ts-mode) . kiln-contact))
(add-hook 'yaml-mode-hook #'eglot-ensure)
(add-hook 'yaml-ts-mode-hook #'eglot-ensure)
(when (fboundp 'yaml-mode)
  (add-to-list 'auto-mode-alist '("\\.template\\'" . yaml-mode)))

(provide 'kiln)
;;; kiln.el ends here
