/// A table of the report, which can be scrolled where the page is too narrow for it. Pure.
struct ReportTable {
  struct Column {
    enum Kind: String {
      case text, number, time
      /// What other columns say.
      case drawing
    }

    let title: String
    let kind: Kind

    init(_ title: String, _ kind: Kind = .text) { (self.title, self.kind) = (title, kind) }
  }

  /// What the table is about. It is unique on the page.
  let caption: String
  let columns: [Column]
  let rows: [[HTMLText]]
  /// What a table without rows says instead.
  var otherwise = "None."

  var html: HTMLText {
    if rows.isEmpty { return "<p class=\"none\">\(caption): \(otherwise)</p>\n" }
    // A region that can be scrolled has to be reached by the keyboard (WCAG 2.1.1).
    var html: HTMLText = """
      <div class="scroll" tabindex="0" role="region" aria-label="\(caption)"><table><caption>\(caption)</caption>
      <thead><tr>
      """
    for column in columns { html += "<th scope=\"col\"\(Self.style(column))>\(column.title)</th>" }
    html += "</tr></thead>\n<tbody>\n"
    var body = ""
    for row in rows {
      body += "<tr>"
      for (index, (column, cell)) in zip(columns, row).enumerated() {
        let tag = index == 0 ? "th scope=\"row\"" : "td"
        body += "<\(tag)\(Self.style(column).description)>\(cell.description)</\(index == 0 ? "th" : "td")>"
      }
      body += "</tr>\n"
    }
    return HTMLText(html: "\(html)\(body)</tbody></table></div>\n")
  }

  private static func style(_ column: Column) -> HTMLText {
    column.kind == .text ? "" : " class=\"\(column.kind.rawValue)\""
  }
}
