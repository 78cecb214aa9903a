internal import Spool

/// The standing orders as lines of a table. Pure.
struct OrderLines {
  let snapshot: SpoolSnapshot
  let look: Look
  let width: Int
  /// The maximum number of orders to list.
  let limit: Int

  /// A heading and a line for each order; empty if there is none.
  var lines: [StyledLine] {
    if snapshot.orderCount == 0 { return [] }
    let shown = snapshot.orders.prefix(limit)
    let names = shown.map { fitted($0.name.display, to: max(8, width / 2), ellipsis: look.ellipsis) }
    let column = names.map { displayWidth($0) }.max() ?? 0
    var lines = [line("standing orders (\(snapshot.orderCount))", .bold)]
    for (name, order) in zip(names, shown) {
      lines.append(line("  \(padded(name, to: column, left: false))  \(remark(order))", ink(order)))
    }
    if shown.count < snapshot.orderCount {
      lines.append(line("  \(look.ellipsis) and \(snapshot.orderCount - shown.count) more", .faint))
    }
    return lines
  }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine {
    StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look, ink)
  }

  private func ink(_ order: OrderStatus) -> Ink? {
    switch order.state {
    case .failed: .red
    case .checking: .green
    case .waiting, .interrupted, .paused: order.problem == nil ? nil : .yellow
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
    if let problem = order.problem { text += "; \(escaped(problem.code)): \(escaped(problem.reason))" }
    return text
  }
}
