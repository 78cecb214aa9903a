package import Spool

/// The size of a payload, and how long and how fast it came: the same wherever a job that is done is told of. Pure.
package struct PayloadFigures: Sendable {
  private let size: UInt64
  /// Bytes that were received for it, and in how many milliseconds; nil if it was there already, or nobody knows.
  private let transfer: (bytes: UInt64, milliseconds: Int64)?

  /// - Parameter receipt: the fields of a `done:` line, or of the event `done`.
  package init(size: UInt64, receipt: Fields) {
    func number(_ field: String) -> Int64? { receipt[field].flatMap { decimal($0) }.map { Int64(clamping: $0) } }
    self.size = size
    // Versions before 0.3 wrote whole seconds only.
    let milliseconds = number("milliseconds") ?? number("seconds").map { $0.multipliedReportingOverflow(by: 1000).0 }
    if let milliseconds, let bytes = number("bytes-fetched"), bytes > 0 {
      transfer = (UInt64(bytes), max(0, milliseconds))
    } else {
      transfer = nil
    }
  }

  /// `48.0M in 5.31s, 9.04M/s`. The rate is what the other two give, waits between attempts included.
  package var text: String {
    guard let transfer else { return shortBytes(size) }
    let bytes = min(transfer.bytes, size)
    let part = bytes < size ? "\(shortBytes(size)), \(shortBytes(bytes)) of it" : shortBytes(size)
    let rate = transfer.milliseconds > 0 ? ", \(shortRate(Double(bytes) * 1000 / Double(transfer.milliseconds)))" : ""
    return "\(part) in \(shortDuration(milliseconds: transfer.milliseconds))\(rate)"
  }
}
