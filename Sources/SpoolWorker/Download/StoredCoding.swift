internal import Spool
internal import Transfer

/// Recognizes responses whose Content-Encoding only repeats the file's suffix. Apache's `AddEncoding x-gzip .gz` and
/// some object stores send it with the bytes of the stored file: the file is what is wanted, and nothing is unpacked.
enum StoredCoding {
  /// The suffixes of files that are stored in a coding (RFC 9110 section 8.4.1, and what servers send).
  private static let suffixes: [String: [String]] = [
    "gzip": ["gz", "tgz", "svgz", "gzip"], "compress": ["z", "taz"], "br": ["br"], "zstd": ["zst", "tzst"],
    "bzip2": ["bz2", "tbz", "tbz2"], "xz": ["xz", "txz"],
  ]

  /// Whether the body is the stored file in spite of its coding: its name has the coding's suffix, and the response
  /// states the file's length. What a server packs while it sends has no length in advance.
  /// - Parameter asked: the job's URL. The response's own counts as well.
  static func isOfFile(_ response: Response, asked: URLParts) -> Bool {
    guard let coding = response.coding?.lowercasedASCII, isLengthStated(response) else { return false }
    let known = suffixes[coding.begins(with: "x-") ? String(coding.dropFirstBytes(2)) : coding] ?? []
    return [asked, response.url].contains { url in
      let parts = url.lastPathSegment?.lowercasedASCII.split(at: ".", omittingEmptySubsequences: false) ?? []
      return parts.count > 1 && known.contains(String(parts[parts.count - 1]))
    }
  }

  private static func isLengthStated(_ response: Response) -> Bool {
    switch response.content {
    case .whole: response.bodyLength != nil
    case .range(_, _, let total): total != nil
    case .unknownRange, .nothingThere, .refused: false
    }
  }
}

extension ResponseVerdict.Asked {
  /// What becomes of a body in a coding that was not asked for; nil if it is taken as it is.
  /// - Parameters:
  ///   - size: of the whole body; nil if it is not known.
  ///   - isOdd: it may not be the file.
  func verdict(on coding: String, size: UInt64?, isOdd: Bool = false) -> ResponseVerdict? {
    let reason = "\(url.host) sent Content-Encoding \(escaped(coding.prefix(40))), which was not requested"
    switch request.encoded {
    case .keep: return nil
    case .decode: return .askDecoded(reason)
    case nil: break
    }
    // A digest shows in the end what it is. A size does so only if it is stated: what a server packs while it sends it
    // has none.
    let declared = request.expected.size
    if let declared, size == declared { return nil }
    if hasChecksum, size == nil || declared == nil { return nil }
    let advice = "add `encoded: keep` to the job to save it as it comes, or `encoded: decode`"
    // Another answer may follow if this one is odd, or if the file came without a coding before.
    return .fail(Failure(isOdd || dataLength > 0 ? .badResponse : .encoded, "\(reason): \(advice)"))
  }
}
