package import Spool

/// How the next request continues the data that is there.
package struct ResumePlan: Equatable {
  package enum Comparison: Equatable {
    /// The answer has to carry the validator that the data was fetched under.
    case validator
    /// A declared checksum will tell: the answer's size must agree.
    case size
  }

  /// 0 without ``last``: the whole representation, without a Range.
  package var offset: UInt64
  /// The last byte to ask for, itself included; nil for all from ``offset`` on.
  package var last: UInt64?
  /// What `If-Range` carries, verbatim.
  package var ifRange: String?
  package var comparison: Comparison

  package static let fresh = ResumePlan(offset: 0, ifRange: nil, comparison: .validator)

  /// - Parameters:
  ///   - length: of the data that is trusted.
  ///   - version: what it is a prefix of; nil when that is not known.
  ///   - mirror: which of the job's URLs is asked next, counted from 1.
  ///   - hasChecksum: whether the job declares a CRC-32, which would show a splice.
  package static func decide(length: UInt64, version: RemoteVersion?, mirror: Int, hasChecksum: Bool) -> ResumePlan {
    guard length > 0, let version else { return .fresh }
    // Longer than the whole: whatever it is, it is no prefix.
    if let size = version.size, length > size { return .fresh }
    if mirror != version.mirror, hasChecksum {
      // Another server's validators mean nothing to this one.
      return ResumePlan(offset: length, ifRange: nil, comparison: .size)
    }
    if let validator = version.ifRange {
      return ResumePlan(offset: length, ifRange: version.ignoresIfRange ? nil : validator, comparison: .validator)
    }
    return hasChecksum ? ResumePlan(offset: length, ifRange: nil, comparison: .size) : .fresh
  }
}
