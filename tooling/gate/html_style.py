"""The page's one style sheet. Text keeps a contrast of 4.5 or more in both themes; a test in a browser measures it."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1d2126; --quiet: #565d66; --line: #dcdcd7; --link: #1f5fa8;
  --code: #f0f0ec; --focus: #1f5fa8;
  --pass: #1b6b3d; --pass-soft: #e2f2e7; --fail: #b3231b; --fail-soft: #fbe6e3;
  --open: #855400; --open-soft: #fbf0d6; --note: #3d566e; --note-soft: #e7eef5;
  --cold: #4a78b5; --warm: #d07a28; --before: #1d2126;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1c2026; --ink: #e7e6e1; --quiet: #a5abb3; --line: #343a42; --link: #8fbcf2;
    --code: #272c34; --focus: #8fbcf2;
    --pass: #7fd8a0; --pass-soft: #1a3325; --fail: #ff9d94; --fail-soft: #43201e;
    --open: #f0c465; --open-soft: #3a2e14; --note: #a9c4de; --note-soft: #232f3b;
    --cold: #6f9fdc; --warm: #e39a52; --before: #e7e6e1;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { max-width: 66rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 3rem;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .9em; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -100rem; padding: .5rem 1rem; background: var(--card); z-index: 1; }
.skip:focus { left: 1rem; top: .5rem; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; }
h1 { margin: .25rem 0 1.25rem; font-size: clamp(1.25rem, 3.5vw, 1.6rem); font-weight: 500; }
h2 { margin: 0 0 .75rem; font-size: 1.25rem; }
h3 { margin: 1.75rem 0 .5rem; font-size: 1.05rem; }
h4 { margin: 1.5rem 0 .25rem; font-size: 1rem; }
p { margin: .4rem 0; max-width: 46rem; }
.about, .quiet, .hint, .run { color: var(--quiet); }
.about { margin: 0; }
.hint { display: block; font-size: .88rem; font-weight: 400; }
.verdict { display: block; font-size: clamp(2.6rem, 10vw, 4.2rem); font-weight: 750; letter-spacing: -.02em;
  line-height: 1.05;
  color: var(--tone); }
.pass { --tone: var(--pass); --soft: var(--pass-soft); }
.fail { --tone: var(--fail); --soft: var(--fail-soft); }
.incomplete { --tone: var(--open); --soft: var(--open-soft); }
.first { padding: 1.1rem 1.3rem 1.2rem; border-radius: 10px; background: var(--soft);
  border-left: 6px solid var(--tone); }
.first h2 { margin: 0 0 .35rem; font-size: .95rem; font-weight: 650; color: var(--tone); }
.cause { font-size: 1.15rem; line-height: 1.45; white-space: pre-line; }
.first .run, .first p:last-child { color: var(--ink); }
.word { font-weight: 650; }
.remark p { margin: 0; max-width: none; }
.remark { margin-top: 1rem; padding: .6rem 1rem; border-radius: 8px; background: var(--note-soft); max-width: none; }
pre { margin: .4rem 0; padding: .65rem .9rem; border-radius: 8px; background: var(--card);
  border: 1px solid var(--line);
  overflow-x: auto; overflow-wrap: normal; }
pre code { font-size: .95em; user-select: all; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; margin: 1.5rem 0 0; padding: 0; list-style: none; }
nav a { display: inline-block; padding: .25rem 0; }
main > section { margin-top: 1.5rem; padding: 1.25rem 1.4rem 1.4rem; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); }
main pre { background: var(--code); border-color: transparent; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .8rem; font-weight: 650;
  max-width: 100%; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom;
  color: var(--tone); background: var(--soft); }
.error, .breaks { --tone: var(--fail); --soft: var(--fail-soft); }
.warning { --tone: var(--open); --soft: var(--open-soft); }
.gains { --tone: var(--pass); --soft: var(--pass-soft); }
.note, .changes, .not-run { --tone: var(--note); --soft: var(--note-soft); }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; min-width: 100%; font-size: .94rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  min-width: 9.5rem; max-width: 30rem; }
th:first-child { min-width: 6.5rem; }
td:has(> .badge:only-child) { min-width: 5.5rem; }
thead th { font-weight: 600; font-size: .86rem; color: var(--quiet); white-space: nowrap; }
tbody th { font-weight: 600; overflow-wrap: normal; }
tbody tr:last-child > * { border-bottom: 0; }
td code, th code { overflow-wrap: anywhere; }
.detail { display: block; white-space: pre-line; margin-top: .2rem; }
tr:has(+ .why) > * { border-bottom: 0; }
.why > td { max-width: none; padding-top: 0; }
ul.reasons, ul.changes, ul.faults, ul.findings { margin: 0; padding: 0; list-style: none; }
ul.reasons > li + li { margin-top: .5rem; }
ul.likewise { margin: .25rem 0 0; padding-left: 1.2rem; }
ul.findings > li { padding: .6rem 0; border-bottom: 1px solid var(--line); }
ul.findings > li:last-child { border-bottom: 0; }
ul.changes { background: none; }
ul.changes li { margin: .35rem 0; }
ul.faults li + li { margin-top: 1rem; padding-top: 1rem; border-top: 1px solid var(--line); }
ol.errands { margin: 0; padding-left: 1.4rem; }
ol.errands li + li { margin-top: .9rem; }
details { margin: .75rem 0 0; }
summary { cursor: pointer; color: var(--link); padding: .2rem 0; }
.record { margin: 0; border-bottom: 1px solid var(--line); }
.record > summary { display: flex; flex-wrap: wrap; gap: .15rem 1rem; align-items: baseline; padding: .5rem 0;
  color: var(--quiet);
  font-size: .94rem; list-style: none; }
.record > summary::-webkit-details-marker { display: none; }
.record > summary::before { content: "+"; color: var(--link); font-family: monospace; }
.record[open] > summary::before { content: "\\2212"; }
.record > summary .name { color: var(--ink); font-weight: 600; min-width: min(14rem, 60%); }
.digest { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .85em; }
dl { display: grid; grid-template-columns: fit-content(12rem) minmax(0, 1fr); gap: .2rem 1rem; margin: .3rem 0 1rem;
  font-size: .94rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
.figure + .figure { margin-top: 2rem; padding-top: .25rem; border-top: 1px solid var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.4rem; margin: .6rem 0 1rem; padding: 0; list-style: none;
  font-size: .9rem; }
.key { display: inline-block; width: 1rem; height: .8rem; margin-right: .45rem; border-radius: 2px;
  vertical-align: -.05rem; }
.key.cold { background: var(--cold); } .key.warm { background: var(--warm); }
.key.compiling { background: linear-gradient(90deg, var(--cold) 50%, var(--warm) 50%); opacity: .45; }
.key.before { width: 3px; height: 1.05rem; vertical-align: -.2rem; background: var(--before); }
.chart { display: block; overflow: hidden; margin: .5rem 0; }
.chart text { fill: var(--ink); font-size: 12px; font-variant-numeric: tabular-nums; paint-order: stroke;
  stroke: var(--card); stroke-width: 5px; stroke-linejoin: round; }
.chart .name { font-size: 13px; font-weight: 600; }
.chart .long { font-size: 11.5px; font-weight: 400; }
.chart .tick, .chart .absent { fill: var(--quiet); }
.chart .grid { stroke: var(--line); stroke-dasharray: 2 4; }
.chart .axis { stroke: var(--quiet); }
.chart .cold { fill: var(--cold); } .chart .warm { fill: var(--warm); } .chart .other { fill: var(--quiet); }
.chart .compiling { fill: var(--card); opacity: .55; }
.chart .lost { fill: var(--fail); } .chart .gained { fill: var(--pass); }
.chart .before { stroke: var(--before); stroke-width: 3; }
.chart .interval { stroke: var(--ink); stroke-width: 3; stroke-linecap: round; opacity: .55; }
.chart .floor { stroke: var(--fail); stroke-width: 2.5; stroke-dasharray: 4 2; }
footer { margin-top: 2rem; color: var(--quiet); font-size: .92rem; }
footer h2 { font-size: 1rem; color: var(--ink); }
@media (max-width: 34rem) {
  main > section { padding: 1rem; }
  .first { padding: .9rem 1rem; }
  #requirements table { width: 100%; table-layout: fixed; }
  #requirements :is(th, td) { min-width: 0; padding-right: .5rem; }
  #requirements thead th { font-size: .72rem; white-space: normal; }
  #requirements .badge { padding: .05rem .35rem; font-size: .7rem; }
  #requirements thead th:first-child { width: 30%; }
  #requirements thead th:nth-child(2) { width: 6.4rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .4rem; }
}
@media print {
  :root { color-scheme: light; }
  html { background: none; }
  nav, .skip { display: none; }
  main > section { border: 0; padding: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .scroll { overflow: visible; }
  table :is(th, td):is(th, td, :first-child) { min-width: 0; overflow-wrap: anywhere; }
  details::details-content { content-visibility: visible; }
  .key, .badge, .first, .remark { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, li, svg, .record { break-inside: avoid; }
}
"""
