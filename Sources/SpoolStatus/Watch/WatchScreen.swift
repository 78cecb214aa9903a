internal import Spool

/// The picture of `status --watch` in a window: the numbers, a part of the table, and a line for the person. Pure.
package struct WatchScreen: Sendable {
  private let look: Look
  /// The first line of the list that is shown.
  private var top = 0
  private var rates: [(time: Timestamp, rate: Double)] = []

  package init(_ look: Look) { self.look = look }

  /// The lines of the screen, at most `rows`. The numbers are first, however low the window is.
  /// - Parameter snapshot: arranged as `keys` asks for.
  /// - Parameter columns: the last one stays empty: terminals differ in where the cursor is after a full line.
  package mutating func lines(_ snapshot: SpoolSnapshot, _ keys: inout WatchKeys, columns: Int, rows: Int)
    -> [StyledLine]
  {
    let width = max(1, columns - 1)
    if case .page(let text) = keys.mode { return page(text, &keys, width, rows) }
    let table = StatusTable(
      snapshot, look, width: width, selected: keys.selected, isFiltered: !keys.filter.isEmpty, drawsBars: true
    ) { _ in .max }
    if rates.last?.time != snapshot.time { rates = rates.suffix(199) + [(snapshot.time, snapshot.rate ?? 0)] }
    let bottom = rows > 2 || rows == 2 && keys.mode != .table ? [self.bottom(snapshot, keys, width)] : []
    var lines = head(table, rows - bottom.count, curve(width))
    let list = table.rows
    let room = max(0, rows - lines.count - bottom.count)
    keys.measure(room: room)
    let all = list.flatMap(\.lines)
    top = scrolled(to: span(of: keys.selected, list), of: all.count, room: room)
    lines += all.dropFirst(top).prefix(room)
    while lines.count < rows - bottom.count { lines.append(StyledLine(look)) }
    return lines + bottom
  }

  /// The numbers, and in a window that is not too low, what else is above the list.
  private func head(_ table: StatusTable, _ rows: Int, _ curve: StyledLine?) -> [StyledLine] {
    // Two lines of the list are worth more.
    let most = max(1, rows - 3)
    var lines = Array(table.summary.prefix(most))
    if rows >= 12, lines.count < most, let curve { lines.append(curve) }
    if let heading = table.heading {
      if rows >= 16 { lines.append(StyledLine(look)) }
      if lines.count < most { lines.append(heading) }
    }
    return Array(lines.prefix(max(0, rows)))
  }

  /// The rate of all jobs over time, as a line; nil before anything has come.
  private func curve(_ width: Int) -> StyledLine? {
    guard let most = rates.map(\.rate).max(), most > 0 else { return nil }
    let marks = Array(look.ellipsis == "…" ? " ▁▂▃▄▅▆▇█" : " .,-~=+*#")
    let title = "up to \(shortRate(most)): "
    let text = rates.suffix(max(0, width - title.count)).map { marks[Int((8 * $0.rate / most).rounded(.up))] }
    return line(title + String(text), width, .green)
  }

  /// The lines of the selected row: their first, and the one behind their last; nil if none is selected.
  private func span(of selected: TableSubject?, _ rows: [TableRow]) -> Range<Int>? {
    guard let selected else { return nil }
    var first = 0
    var heading = 0
    for row in rows {
      if row.subject == selected { return (first - heading..<first + row.lines.count) }
      // The heading of a group is shown with its first job.
      heading = row.subject == nil ? row.lines.count : 0
      first += row.lines.count
    }
    return nil
  }

  /// The first line to show: the last picture's, if the selected row is then in sight.
  private func scrolled(to span: Range<Int>?, of count: Int, room: Int) -> Int {
    var top = self.top
    if let span {
      if span.upperBound > top + room { top = span.upperBound - room }
      if span.lowerBound < top { top = span.lowerBound }
    }
    return max(0, min(top, count - room))
  }

  // MARK: the last line

  private func bottom(_ snapshot: SpoolSnapshot, _ keys: WatchKeys, _ width: Int) -> StyledLine {
    switch keys.mode {
    case .question(let gesture, let subject):
      let (before, after) = ("\(gesture.command) ", " and its data? y/n")
      // As much of the name as there is room for: what is asked stays whole.
      let room = max(8, width - displayWidth(before) - displayWidth(after))
      return line(before + fitted(subject.name.display, to: room, ellipsis: look.ellipsis) + after, width, .bold)
    case .filter: return line("/" + escaped(keys.filter) + "_", width, .bold)
    case .table, .page: break
    }
    if let message = keys.message { return line(message.text, width, message.isProblem ? .red : .bold) }
    var parts: [String] = []
    if !keys.filter.isEmpty { parts = ["/\(escaped(keys.filter)): \(snapshot.subjects.count) shown", "Esc all"] }
    if keys.sort != .turn { parts.append("by \(keys.sort.rawValue)") }
    // The most useful first; how to find the others, and the way out, are there however narrow it is.
    let keys = ["h hold", "l release", "r retry", "c cancel", "p first", "s sort", "/ filter"]
    return hints(parts, keys, ["? help", "q quit"], width)
  }

  private func line(_ text: String, _ width: Int, _ ink: Ink?) -> StyledLine {
    StyledLine(text, within: width, look, ink)
  }

  /// `first` and `last`, and between them as many of `more` as there is room for.
  private func hints(_ first: [String], _ more: [String], _ last: [String], _ width: Int) -> StyledLine {
    var shown = first
    func text(_ parts: [String]) -> String { (parts + last).joined(separator: "  ") }
    for hint in more {
      guard displayWidth(text(shown + [hint])) <= width else { break }
      shown.append(hint)
    }
    return line(text(shown), width, .faint)
  }

  // MARK: a page

  private func page(_ text: [String], _ keys: inout WatchKeys, _ width: Int, _ rows: Int) -> [StyledLine] {
    let wrapped = text.flatMap { Self.wrapped($0, to: width) }
    let room = max(1, rows - 1)
    keys.measure(room: room, pageLines: wrapped.count)
    var lines = wrapped.dropFirst(keys.pageTop).prefix(room).map { StyledLine($0, look) }
    while lines.count < room { lines.append(StyledLine(look)) }
    let isWhole = wrapped.count <= room
    let bottom = hints([], isWhole ? [] : ["j/k scroll"], ["q back"], width)
    return Array((lines + [bottom]).prefix(max(0, rows)))
  }

  /// `text` in lines of at most `width` columns, the later ones indented.
  static func wrapped(_ text: String, to width: Int) -> [String] {
    var lines: [String] = []
    var rest = Array(text)[...]
    while !rest.isEmpty || lines.isEmpty {
      let indent = lines.isEmpty || width < 20 ? "" : "    "
      let most = beginning(of: rest, columns: width - indent.count)
      // Between words, if there are any; and a window of one column has no room for a wide character.
      let word = most.count < rest.count ? most.lastIndex(of: " ").map { most[..<$0] } : nil
      let isIndent = word?.allSatisfy { $0 == " " } ?? true
      let taken = most.isEmpty && !rest.isEmpty ? rest.prefix(1) : isIndent ? most : word ?? most
      lines.append(indent + String(taken))
      rest = rest.dropFirst(taken.count)
      if !isIndent { rest = rest.drop { $0 == " " } }
    }
    return lines
  }
}

extension SpoolSnapshot {
  /// The same with the jobs and orders that match `filter`, in this order. The numbers still count all.
  package func arranged(by sort: WatchSort, matching filter: String) -> SpoolSnapshot {
    var result = self
    let wanted = filter.lowercased()
    for (state, group) in jobs {
      let kept = wanted.isEmpty ? group : group.filter { $0.says(wanted) }
      result.jobs[state] = sort == .turn ? kept : kept.sorted(by: sort.precedes)
    }
    if !wanted.isEmpty { result.orders = orders.filter { $0.name.display.lowercased().contains(wanted) } }
    return result
  }

  package var subjects: [TableSubject] {
    JobState.allCases.flatMap { jobs[$0] ?? [] }.map(\.subject) + orders.map(\.subject)
  }
}

extension JobStatus {
  /// Whether what the table shows of it contains `text`, which is in lower case.
  fileprivate func says(_ text: String) -> Bool {
    let shown = [
      name.display, state.rawValue, problem?.code, problem.map { escaped($0.reason) }, waits?.sentence, target?.host,
    ]
    return shown.contains { $0?.lowercased().contains(text) ?? false }
  }
}
