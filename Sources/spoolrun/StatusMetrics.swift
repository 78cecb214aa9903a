internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// What `status --metrics` does.
struct StatusMetrics {
  let spool: Spool
  /// The file for node_exporter's textfile collector, or `-`; nil for OpenMetrics on standard output.
  let textfile: String?

  /// A file of metrics has some hundred lines.
  private static let mostRead = 1 << 20

  /// - Throws: ``SpoolError``; then the file is as it was.
  func run() throws(SpoolError) {
    var memory = CounterMemory()
    guard let textfile, textfile != "-" else {
      let metrics = try MetricsReader(spool).read(&memory)
      Terminal.write(metrics.text(textfile == nil ? .openMetrics : .text), to: STDOUT_FILENO)
      return
    }
    let last = try ReplacedFile.read(textfile, limit: Self.mostRead).map { String(decoding: $0, as: UTF8.self) }
    memory = last.flatMap { CounterMemory($0, of: spool.location) } ?? memory
    let metrics = try MetricsReader(spool).read(&memory)
    try ReplacedFile.write(Array((metrics.text(.text) + memory.text(of: spool.location)).utf8), to: textfile)
  }
}
