#!/usr/bin/env python3
"""Records `kiln stack create --wait` in a terminal as an animated picture: docs/record.py KILN writes docs/create.svg

The frames and their times are from a real run on a simulated cloud. The picture needs no script: each frame is a column of
rows, and CSS moves the columns. Rows that several frames have in common are written once.
"""
import html
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, CELL, LINE, EDGE = 84, 8, 19, 14   # columns; width and height of a character, and the border, in pixels
SECONDS = 0.2                             # at least, between two frames
HOLD = 3                                  # seconds for the last frame
MARK = '[·✔✘⠀-⣿]'
PROMPT = '$ kiln --local stack create -t three-tier.yaml --wait three-tier'
COLORS = {'1': 'bold', '2': 'dim', '31': 'red', '32': 'green', '33': 'yellow'}
STYLE = '''
  .film { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre; }
  .screen { fill: #f6f8fa; stroke: #d1d9e0; }
  .bold { font-weight: 600; } .dim { fill: #59636e; } .red { fill: #d1242f; } .green { fill: #1a7f37; } .yellow { fill: #9a6700; }
  @media (prefers-color-scheme: dark) {
    .film { fill: #e6edf3; } .screen { fill: #151b23; stroke: #3d444d; }
    .dim { fill: #9198a1; } .red { fill: #f85149; } .green { fill: #3fb950; } .yellow { fill: #d29922; }
  }
'''


def record(kiln):
    """The output of a create with the time of each piece, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        exports = pathlib.Path(folder, 'cloud.sh')
        cloud = subprocess.Popen([kiln, 'testcloud', '--port', '0', '--latency', '0.05', '--exports', exports],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            cloud.stdout.readline()
            child, screen = pty.fork()
            if child == 0:
                os.environ.update(TERM='xterm-256color', KILN_DATABASE=f'{folder}/stacks.db')
                command = f'{kiln} --local stack create -t {ROOT}/examples/three-tier.yaml --wait three-tier'
                os.execvp('sh', ['sh', '-c', f'stty rows 40 cols {WIDTH}; . {exports}; exec {command}'])
            pieces, begun = [], time.monotonic()
            while select.select([screen], [], [], 60)[0]:
                try:
                    pieces.append((time.monotonic() - begun, os.read(screen, 65536).decode()))
                except OSError:   # the command has ended
                    break
            os.waitpid(child, 0)
            return pieces
        finally:
            cloud.terminate()
            cloud.wait()


def rows(piece):
    """The rows of a frame: lists of (column, style, text). The command draws all rows each time, each as wide as the terminal."""
    found, row, column, style = [], [], 0, ''
    for control, text in re.findall(r'(\x1b\[[0-9;?]*[A-Za-z]|\r\n)|([^\x1b\r\n]+)', piece):
        if control == '\r\n':
            found.append(row)
            row, column = [], 0
        elif control.endswith('m'):
            style = COLORS.get(control[2:-1], '')
        while text:
            part, text = text[:WIDTH - column], text[WIDTH - column:]
            # Columns and marks are placed one by one: the characters of a font need not have the same width.
            words = re.finditer(rf'{MARK}|\S+(?: (?!{MARK})\S+)*', part)
            row += [(column + word.start(), style, word[0]) for word in words]
            column += len(part)
            if column == WIDTH:
                found.append(row)
                row, column = [], 0
    return [row for row in [*found, row] if row]


def frames(pieces):
    """The frames with their times, from the first row of the progress to the last."""
    found = []
    for at, piece in pieces:
        is_frame = 'three-tier\x1b' in piece
        is_last = 'CREATE_COMPLETE' in piece
        if is_frame and (is_last or not found or at - found[-1][0] >= SECONDS):
            found.append((at, rows(piece)))
        if is_last:
            break
    assert found and is_last, pieces
    return [(at - found[0][0], frame) for at, frame in found]


def row_text(row):
    def part(column, style, text):
        look = f' class="{style}"' if style else ''
        return f'<tspan x="{column * CELL}"{look}>{html.escape(text)}</tspan>'

    return ''.join(part(*one) for one in row)


def picture(film):
    height = (max(len(frame) for _, frame in film) + 1) * LINE
    width = WIDTH * CELL
    known, columns = {}, []
    for index, (_, frame) in enumerate(film):
        uses = []
        for number, row in enumerate(frame, 1):
            name = known.setdefault(row_text(row), f'r{len(known)}')
            uses.append(f'<use href="#{name}" y="{number * LINE}"/>')
        columns.append(f'<g transform="translate({index * width})">{"".join(uses)}</g>')
    total = film[-1][0] + HOLD
    steps = ''.join(f'{at / total * 100:.2f}% {{ transform: translateX({-index * width}px) }} '
                    for index, (at, _) in enumerate(film))
    last = -(len(film) - 1) * width
    texts = '\n'.join(f'<text id="{name}">{text}</text>' for text, name in known.items())
    full_width, full_height = width + 2 * EDGE, height + 2 * EDGE
    return f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full_width} {full_height}" role="img" \
aria-label="The resources of a stack, with their types, states and times, while Kiln creates the stack">
<!-- docs/record.py makes this file. -->
<style>{STYLE}  .strip {{ transform: translateX({last}px); animation: play {total:.1f}s steps(1) infinite; }}
  @keyframes play {{ {steps}}}
  @media (prefers-reduced-motion) {{ .strip {{ animation: none; }} }}
</style>
<defs>
{texts}
</defs>
<rect class="screen" x="0.5" y="0.5" width="{full_width - 1}" height="{full_height - 1}" rx="6"/>
<svg x="{EDGE}" y="{EDGE}" width="{width}" height="{height}" class="film">
<text y="{LINE - 5}">{PROMPT}</text>
<g transform="translate(0 {LINE - 5})"><g class="strip">
{chr(10).join(columns)}
</g></g>
</svg>
</svg>
'''


if __name__ == '__main__':
    svg = picture(frames(record(str(pathlib.Path(sys.argv[1]).resolve()))))
    assert len(svg) <= 60_000, f'{len(svg)} bytes'
    (ROOT / 'docs/create.svg').write_text(svg)
