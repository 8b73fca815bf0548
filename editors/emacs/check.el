;;; check.el --- Print the diagnostics of a file  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by ../check with a file as the last argument: waits for the diagnostics, prints them and leaves.

;;; Code:

(require 'kiln)
(require 'yaml-mode)
(require 'flymake)

(let ((eglot-sync-connect t)
      (until (+ (float-time) 20)))
  (find-file (pop command-line-args-left))
  (unless (derived-mode-p 'yaml-mode 'yaml-ts-mode) (error "Not in a mode for YAML: %s" major-mode))
  ;; In batch mode no command ends, which eglot-ensure waits for.
  (apply #'eglot--connect (eglot--guess-contact))
  (while (and (null (flymake-diagnostics)) (< (float-time) until))
    (flymake-start)
    (accept-process-output nil 0.05))
  (dolist (diagnostic (flymake-diagnostics))
    (princ (format "%d: %s\n" (line-number-at-pos (flymake-diagnostic-beg diagnostic))
                   (flymake-diagnostic-text diagnostic))))
  (kill-emacs (if (flymake-diagnostics) 0 1)))

;;; check.el ends here
