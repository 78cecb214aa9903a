package import Spool

package struct DoneStatus: Sendable {
  package var name: FileName
  package var time: Timestamp
  /// The path of the payload below its root.
  package var output: String
  /// Bytes of the payload; nil if the receipt does not say.
  package var size: UInt64?
  /// Bytes that were received for it, in all attempts.
  package var fetched: UInt64?
  package var seconds: Int64?
  /// Its size, and how long and how fast it came.
  package var figures: PayloadFigures?
  package var attempts: Int?

  /// - Returns: nil if there is no receipt in the file.
  package init?(_ name: FileName, _ bytes: UnsafeRawBufferPointer) {
    var receipt: (time: Timestamp, fields: Fields)?
    var verified: UInt64?
    JournalScan.lines(bytes) { line in
      switch line.key {
      case .verified: verified = line.number("size")
      case .done: if let time = line.time, let fields = line.fields { receipt = (time, fields) }
      default: break
      }
    }
    guard let receipt else { return nil }
    self.name = name
    (time, output, size) = (receipt.time, receipt.fields["output"] ?? "", verified)
    figures = verified.map { PayloadFigures(size: $0, receipt: receipt.fields) }
    fetched = receipt.fields.number("bytes-fetched")
    seconds = receipt.fields.number("seconds").map { Int64(clamping: $0) }
    attempts = receipt.fields.number("attempts").map { Int(clamping: $0) }
  }

  var json: JSONText {
    .object([
      ("name", .string(name.display)), ("time", .string(time.description)), ("output", .string(escaped(output))),
      ("size", .count(size)), ("fetched", .count(fetched)), ("seconds", .count(seconds)),
      ("attempts", .count(attempts)),
    ])
  }
}

/// The size of a payload, and how long and how fast it came: the same wherever a job that is done is told of. Pure.
package struct PayloadFigures: Sendable {
  private let size: UInt64
  /// Bytes that were received for it, and in how many milliseconds; nil if it was there already, or nobody knows.
  private let transfer: (bytes: UInt64, milliseconds: Int64)?

  /// - Parameter receipt: the fields of a `done:` line, or of the event `done`.
  package init(size: UInt64, receipt: Fields) {
    func number(_ field: String) -> Int64? { receipt.number(field).map { Int64(clamping: $0) } }
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
