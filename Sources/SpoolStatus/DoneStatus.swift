package import Spool

/// What a receipt says of a job that is done.
package struct DoneStatus: Sendable {
  /// The job's name.
  package var name: FileName
  /// When it was done.
  package var time: Timestamp
  /// The path of the payload below its root.
  package var output: String
  /// Bytes of the payload; nil if the receipt does not say.
  package var size: UInt64?
  /// Bytes that were received for it, in all attempts.
  package var fetched: UInt64?
  /// How long that took, in seconds.
  package var seconds: Int64?
  /// Its size, and how long and how fast it came.
  package var figures: PayloadFigures?
  /// How many attempts it took.
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
    func number(_ field: String) -> UInt64? { receipt.fields[field].flatMap { decimal($0) } }
    self.name = name
    (time, output, size) = (receipt.time, receipt.fields["output"] ?? "", verified)
    figures = verified.map { PayloadFigures(size: $0, receipt: receipt.fields) }
    fetched = number("bytes-fetched")
    seconds = number("seconds").map { Int64(clamping: $0) }
    attempts = number("attempts").map { Int(clamping: $0) }
  }
}

extension DoneStatus {
  var json: JSONText {
    .object([
      ("name", .string(name.display)), ("time", .string(time.description)), ("output", .string(escaped(output))),
      ("size", .count(size)), ("fetched", .count(fetched)), ("seconds", .count(seconds)),
      ("attempts", .count(attempts)),
    ])
  }
}
