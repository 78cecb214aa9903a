internal import Spool

/// Inline SVG without any text of its own: labels are HTML beside it, so they keep their size when the drawing is
/// stretched to the width of the page. Pure.
enum Charts {
  /// Bars over the time, with the highest value and the ends of the axis written beside them.
  /// - Parameter kind: the class that the bars are coloured by.
  static func bars(_ values: [UInt64], _ axis: TimeAxis, kind: String, shown: (UInt64) -> String) -> HTMLText {
    let most = values.max() ?? 0
    let middle = axis.count / 2
    let ticks: [HTMLText] = [0, middle, axis.count - 1].reduce(into: []) { ticks, index in
      let label: HTMLText = "<span>\(axis.label(index))</span>"
      if ticks.last?.description != label.description { ticks.append(label) }
    }
    return """
      <div class="chart" aria-hidden="true"><div class="most">\(shown(most))</div>
      <svg class="bars \(kind)" viewBox="0 0 \(max(1, values.count)) 100" preserveAspectRatio="none">\
      <path d="\(path(values, height: 100))"/></svg>
      <div class="ticks">\(ticks)</div></div>

      """
  }

  /// The same, small enough for a cell of a table.
  /// - Parameter most: the value that is as high as the drawing.
  static func spark(_ values: [UInt64], most: UInt64, kind: String) -> HTMLText {
    """
    <svg class="spark \(kind)" viewBox="0 0 \(max(1, values.count)) 20" preserveAspectRatio="none" aria-hidden="true">\
    <path d="\(path(values, height: 20, most: most))"/></svg>
    """
  }

  /// A bar that fills `part` of a cell, from 0 to 1.
  static func meter(_ part: Double, kind: String = "plain") -> HTMLText {
    let width = Int((min(1, max(0, part)) * 100).rounded())
    return """
      <svg class="meter \(kind)" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">\
      <path d="M0 0h\(max(1, width))v10H0z"/></svg>
      """
  }

  /// A bar of the width 1 for each value; one that is not 0 is at least 2 % high.
  private static func path(_ values: [UInt64], height: Int, most: UInt64? = nil) -> HTMLText {
    let most = max(1, most ?? values.max() ?? 1)
    var path: HTMLText = ""
    for (index, value) in values.enumerated() where value > 0 {
      let bar = max(2 * height / 100, Int(Double(height) * min(1, Double(value) / Double(most))))
      path += "M\(index) \(height)v-\(max(1, bar))h.9v\(max(1, bar))z"
    }
    return path
  }

  /// The attempts of a job: a bar for each, a line for the time between them, and a mark behind one that failed.
  /// - Parameter seconds: what the whole width stands for.
  static func waterfall(_ job: JobRecord, seconds: Int64) -> HTMLText {
    guard let first = job.attempts.first else { return "" }
    let scale = 1000 / Double(max(1, seconds))
    func x(_ time: Int64) -> Int { Int((Double(time - first.begun.seconds) * scale).rounded()) }
    var shapes: HTMLText = """
      <path class="pause" d="M0 9h\(max(1, x(first.begun.seconds + job.seconds)))v2H0z"/>
      """
    for attempt in job.attempts.suffix(mostAttempts) {
      let (start, end) = (x(attempt.begun.seconds), x(attempt.ended.seconds))
      shapes += "<path d=\"M\(start) 4h\(max(3, end - start))v12h-\(max(3, end - start))z\"/>"
      if case .failed = attempt.end { shapes += "<path class=\"bad\" d=\"M\(max(start + 3, end)) 0h4v20h-4z\"/>" }
    }
    return """
      <svg class="fall" viewBox="0 0 1010 20" preserveAspectRatio="none" aria-hidden="true">\(shapes)</svg>
      """
  }

  private static let mostAttempts = 200
}
