/// The style of the page. Colours have a contrast of at least 4.5 for text and 3 for drawings (WCAG 1.4.3, 1.4.11), in
/// both schemes. No colour says anything that a text does not.
enum ReportStyle {
  static let css = """
    :root{color-scheme:light dark;--page:#fff;--card:#f5f7f9;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;\
    --bar:#0b5cad;--good:#1a7f37;--bad:#b42318}
    @media(prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--text:#e6edf3;--faint:#9ba5b0;\
    --line:#30363d;--bar:#6cb6ff;--good:#57c26c;--bad:#ff8f85}}
    *{box-sizing:border-box}
    body{margin:0 auto;max-width:84rem;padding:1rem clamp(.75rem,3vw,2.5rem);background:var(--page);\
    color:var(--text);font:1rem/1.45 system-ui,sans-serif}
    h1{font-size:1.6rem;margin:.5rem 0;overflow-wrap:anywhere}
    h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
    h3{font-size:1rem;margin:1.2rem 0 .3rem}
    p{margin:.4rem 0}.faint,.none,figcaption{color:var(--faint);font-weight:400}
    a{color:var(--bar)}
    nav ul{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;padding:0;margin:.6rem 0}
    nav a{display:inline-block;padding:.25rem 0}
    dl.sums{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.7rem;margin:1rem 0}
    dl.sums div{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem}
    dl.sums dt{color:var(--faint);font-size:.85rem}dl.sums dd{margin:0;font-size:1.35rem;font-weight:600}
    figure{margin:1rem 0 1.4rem}figcaption{margin-bottom:.3rem}
    .most,.ticks{font-size:.8rem;color:var(--faint)}
    .ticks{display:flex;justify-content:space-between;gap:.5rem}
    .ticks span:nth-child(2):not(:last-child){display:none}
    @media(min-width:40rem){.ticks span:nth-child(2):not(:last-child){display:inline}}
    svg{display:block;fill:var(--bar)}
    svg.good{fill:var(--good)}svg.bad,svg .bad{fill:var(--bad)}svg .pause{fill:var(--faint)}
    svg.bars{width:100%;height:8rem;border-bottom:1px solid var(--faint);border-top:1px dotted var(--line)}
    svg.spark{width:100%;min-width:10rem;height:1.4rem;border-bottom:1px solid var(--line)}
    svg.meter{width:100%;min-width:5rem;height:.7rem}
    svg.fall{width:100%;min-width:16rem;height:1.2rem}
    .scroll{overflow-x:auto;margin:.5rem 0 1rem}
    .scroll:focus-visible,a:focus-visible,summary:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
    table{border-collapse:collapse;width:100%;font-size:.9rem}
    caption{text-align:left;color:var(--faint);padding:.2rem 0}
    th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}
    thead th{font-size:.8rem;color:var(--faint);vertical-align:bottom}
    tbody th{font-weight:600;overflow-wrap:anywhere;min-width:8rem;max-width:24rem}
    td{overflow-wrap:anywhere;min-width:9rem}td.number,td.time{min-width:0}.time{white-space:nowrap}
    .number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
    td.drawing{width:35%;vertical-align:middle}
    code{font:.85em ui-monospace,monospace;overflow-wrap:anywhere}
    summary{cursor:pointer;padding:.25rem 0;color:var(--bar)}
    footer{margin:2.5rem 0 1rem;border-top:1px solid var(--line);padding-top:.5rem;color:var(--faint)}
    @media print{:root{--page:#fff;--card:#fff;--text:#000;--faint:#444;--line:#999;--bar:#0b5cad;--good:#1a7f37;\
    --bad:#b42318}body{font-size:9pt;padding:0;max-width:none}nav,details{display:none}
    .scroll{overflow:visible}table{font-size:8pt}thead{display:table-header-group}tr,figure{break-inside:avoid}
    h2,caption{break-after:avoid}svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
    """
}
