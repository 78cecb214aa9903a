/// What a worker says of itself, in its file in `workers/` (spool.5, WORKERS). It is for people and for `status`; no
/// job depends on it.
package struct WorkerReport: Sendable, Equatable {
  /// Why jobs that could run wait.
  package struct Wait: Sendable, Equatable {
    /// `gate`, `space`, `output`, `proxy` or `network`.
    package let cause: String
    /// For a person.
    package let reason: String

    /// - Parameter reason: for a person.
    package init(_ cause: String, _ reason: String) { (self.cause, self.reason) = (cause, reason) }
  }

  /// When it started, by its host's clock.
  package var started: Timestamp
  /// Its name and version.
  package var program: String?
  /// `once` or `watch`.
  package var mode: String?
  /// The limits that it was started with.
  package var options = Fields()
  /// The number of jobs that it runs.
  package var runs = 0
  /// Empty if no job waits for anything but its time.
  package var waits: [Wait] = []
  /// The number of jobs that it has claimed.
  package var claims = 0
  /// How often it tried to claim a job at the same time as another worker, and that one was faster.
  package var lost = 0
  /// How often a job that it had found was no longer there when it tried: others had done it, or a person had moved it.
  package var missed = 0

  /// A worker that has just started.
  package init(started: Timestamp) { self.started = started }

  /// The content of the file.
  package var text: String {
    var lines = [
      ("started", Fields("\(started)").with("program", program).with("mode", mode)), ("options", options),
      ("runs", Fields("\(runs)")),
    ]
    for wait in waits { lines.append(("waits", Fields(wait.cause).with("reason", wait.reason))) }
    lines.append(("claims", Fields("\(claims)").with("lost", lost).with("missed", missed)))
    return lines.map { "\($0): \($1.text)\n" }.joined()
  }

  /// Reads the content of such a file. Lines that are not known, or not complete, are skipped.
  /// - Returns: nil if it does not say when the worker started.
  package init?(_ bytes: [UInt8]) {
    guard let end = bytes.lastIndex(of: 0x0A) else { return nil }
    self.init(started: Timestamp(seconds: 0))
    var isStarted = false
    for line in String(decoding: bytes[..<end], as: UTF8.self).split(at: "\n") {
      let key = line.prefix(before: ":")
      guard key.endIndex < line.endIndex, let fields = Fields(parsing: line[key.endIndex...].dropFirstBytes()) else {
        continue
      }
      let word = fields.words.first
      switch key {
      case "started":
        guard let time = word.flatMap({ Timestamp($0) }) else { continue }
        (started, isStarted) = (time, true)
        (program, mode) = (fields["program"], fields["mode"])
      case "options": options = fields
      case "runs": runs = Self.count(word)
      case "waits": if let word { waits.append(Wait(word, fields["reason"] ?? "")) }
      case "claims":
        (claims, lost, missed) = (Self.count(word), Self.count(fields["lost"]), Self.count(fields["missed"]))
      default: break
      }
    }
    if !isStarted { return nil }
  }

  private static func count(_ text: String?) -> Int { text.flatMap { decimal($0) }.map { Int(clamping: $0) } ?? 0 }
}
