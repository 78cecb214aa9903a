package import Spool

/// How the next request continues the existing data.
package struct ResumePlan: Equatable {
  /// How a partial response is recognized as the rest of the same version.
  package enum Comparison: Equatable {
    /// The response must have the validator that the data was fetched with.
    case validator
    /// Only the response's size must agree; a declared checksum proves the content.
    case size
  }

  /// 0 without ``last`` requests the whole representation, without a Range.
  package var offset: UInt64
  /// The last byte to request (inclusive); nil for all from ``offset`` on.
  package var last: UInt64?
  /// The value of `If-Range`, verbatim.
  package var ifRange: String?
  /// How a partial response is recognized as the rest of the same version.
  package var comparison: Comparison

  /// The whole of the same version is compared with the data, which it does not replace.
  package var comparesWhole = false

  /// Requests the whole file.
  package static let fresh = ResumePlan(offset: 0, ifRange: nil, comparison: .validator)

  /// - Parameters:
  ///   - length: of the trusted data, in bytes.
  ///   - version: the version that it is a prefix of; nil if it is not known.
  ///   - mirror: the number of the job's URL to request, counted from 1.
  ///   - hasChecksum: whether the job declares a CRC-32, which would show a splice.
  package static func decide(length: UInt64, version: RemoteVersion?, mirror: Int, hasChecksum: Bool) -> ResumePlan {
    guard length > 0, let version else { return .fresh }
    // Longer than the whole, so it is not a prefix.
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
