internal import Spool

/// The standing orders as lines of a table. Pure.
struct OrderLines {
  let snapshot: SpoolSnapshot
  let look: Look
  let width: Int
  /// The maximum number of orders to list.
  let limit: Int
  var selected: TableSubject?
  /// Whether `snapshot` lacks orders on purpose.
  var isFiltered = false

  /// A heading and a line for each order; empty if there is none.
  var rows: [TableRow] {
    if snapshot.orderCount == 0 || isFiltered && snapshot.orders.isEmpty { return [] }
    let shown = snapshot.orders.prefix(limit)
    let names = shown.map { fitted($0.name.display, to: max(8, width / 2), ellipsis: look.ellipsis) }
    let column = names.map { displayWidth($0) }.max() ?? 0
    let count = isFiltered ? "\(snapshot.orders.count) of \(snapshot.orderCount)" : "\(snapshot.orderCount)"
    var rows = [TableRow(lines: [line("standing orders (\(count))", .bold)])]
    for (name, order) in zip(names, shown) {
      let mark = order.subject == selected ? ">" : " "
      let text = "\(mark) \(padded(name, to: column, left: false))  \(remark(order))"
      let ink = order.subject == selected ? .inverse : ink(order)
      rows.append(TableRow(lines: [line(text, ink)], subject: order.subject))
    }
    let more = (isFiltered ? snapshot.orders.count : snapshot.orderCount) - shown.count
    if more > 0 { rows.append(TableRow(lines: [line("  \(look.ellipsis) and \(more) more", .faint)])) }
    return rows
  }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine {
    StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look, ink)
  }

  private func ink(_ order: OrderStatus) -> Ink? {
    switch order.state {
    case .failed: .red
    case .checking: .green
    case .waiting, .interrupted, .paused: order.problem == nil && order.problems.count == 0 ? nil : .yellow
    }
  }

  private func remark(_ order: OrderStatus) -> String {
    let now = snapshot.time
    var parts: [String] = []
    if order.state != .waiting { parts.append(order.state.rawValue) }
    if let checked = order.checked {
      let entries = order.entries.map { $0 == 1 ? " (1 entry)" : " (\($0) entries)" } ?? ""
      parts.append("checked \(shortDuration(max(0, now.seconds - checked.seconds))) ago\(entries)")
    } else {
      parts.append("never checked")
    }
    if let next = order.next, order.state == .waiting {
      parts.append(next <= now ? "due now" : "next in \(shortDuration(next.seconds - now.seconds))")
    }
    var text = parts.joined(separator: ", ")
    if let problems = order.problems.text { text += "; \(problems)" }
    if let problem = order.problem { text += "; \(escaped(problem.code)): \(escaped(problem.reason))" }
    return text
  }
}
