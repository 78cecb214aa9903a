internal import CCurl

/// The cookies of a group of fetches: those of a file, and those that servers set (RFC 6265). libcurl keeps them, and
/// sends each only to the hosts, paths and channels that it is for. They go with the jar.
///
/// It has to outlive the handles that it is attached to.
final class CookieJar {
  /// Bytes of `Set-Cookie` lines after which a server is up to no good: the jar is not used any more.
  private static let limit = 1 << 20

  private let share: UnsafeMutableRawPointer
  private var bytesSet = 0

  /// - Throws: ``TransferFailure`` if the file cannot be read: without its cookies a server may send another page.
  init(file: String?) throws(TransferFailure) {
    let noMemory = TransferFailure(code: .outOfMemory, message: "out of memory")
    guard let share = ccurl_share_cookies() else { throw noMemory }
    self.share = share
    guard let file else { return }
    guard let text = contents(of: file) else { throw .unreadable(file) }
    guard let handle = EasyHandle() else { throw noMemory }
    var setup = EasyOptions(handle)
    attach(&setup)
    for cookie in CookieFile.cookies(in: text) { setup.bytes(CURLOPT_COOKIELIST, cookie) }
    if setup.code != CURLE_OK { throw noMemory }
  }

  deinit { ccurl_share_cleanup(share) }

  /// Has a transfer send and take cookies. Its handle must not be used for another one.
  func attach(_ setup: inout EasyOptions) {
    setup.pointer(CURLOPT_SHARE, share)
    // No file: it turns libcurl's cookies on.
    setup.string(CURLOPT_COOKIEFILE, "")
  }

  func note(_ line: UnsafeRawBufferPointer) {
    let name = "set-cookie:".utf8
    guard line.count > name.count, zip(line, name).allSatisfy({ lowercasedASCII($0) == $1 }) else { return }
    bytesSet += line.count
  }

  var isUsable: Bool { bytesSet <= Self.limit }
}

/// A file with cookies in Netscape's format, as curl and browsers' extensions write it: domain, whether its subdomains
/// count, path, whether it is for TLS alone, expiry, name, value.
package enum CookieFile {
  /// Why a file has a line that is no cookie, no comment and not blank.
  package struct Problem: Error, Equatable {
    package let reason: String
    /// From 1.
    package var line = 0
  }

  /// Looks at each line of the file's contents.
  package static func hasCookies(_ text: [UInt8]) throws(Problem) -> Bool {
    var hasAny = false
    for (index, line) in lines(text).enumerated() {
      do throws(Problem) {
        if try cookie(line) != nil { hasAny = true }
      } catch {
        throw Problem(reason: error.reason, line: index + 1)
      }
    }
    return hasAny
  }

  /// The cookies of a file, each as a line that libcurl reads as it is meant. libcurl would drop those whose expiry is
  /// empty, or before 1970, without a word.
  static func cookies(in text: [UInt8]) -> [[UInt8]] {
    // Lines that are none were refused when the file was looked at; it may have changed since.
    lines(text).compactMap { line in
      do throws(Problem) { return try cookie(line) } catch { return nil }
    }
  }

  private static func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let lines = text.dropFirst(text.starts(with: mark) ? mark.count : 0)
      .split(separator: 0x0A, omittingEmptySubsequences: false)
    return lines.map { $0.last == 0x0D ? $0.dropLast() : $0 }
  }

  /// - Returns: nil for a comment and a blank line.
  private static func cookie(_ line: ArraySlice<UInt8>) throws(Problem) -> [UInt8]? {
    let isComment = line.first == UInt8(ascii: "#") && !line.starts(with: "#HttpOnly_".utf8)
    if isComment || line.allSatisfy(isBlank) { return nil }
    // A value may be empty, and its tab left out.
    var fields = line.split(separator: 0x09, omittingEmptySubsequences: false).map(Array.init)
    guard fields.count == 7 || fields.count == 6 else {
      throw Problem(reason: "it has not 7 fields with tabs between them")
    }
    guard !fields[0].isEmpty, !fields[5].isEmpty else { throw Problem(reason: "it has no domain, or no name") }
    let (includesSubdomains, isForTLS) = (fields[1].map(uppercasedASCII), fields[3].map(uppercasedASCII))
    guard ["TRUE", "FALSE"].contains(where: { includesSubdomains.elementsEqual($0.utf8) }) else {
      throw Problem(reason: "its second field is neither TRUE nor FALSE")
    }
    (fields[1], fields[3]) = (includesSubdomains, isForTLS)
    if fields[2].isEmpty { fields[2] = [UInt8(ascii: "/")] }
    fields[4] = try expiry(fields[4])
    return Array(fields.joined(separator: [0x09]))
  }

  /// Seconds since 1970; 0 for a cookie of the session, for which exporters write nothing, -1 or a word.
  private static func expiry(_ field: [UInt8]) throws(Problem) -> [UInt8] {
    let isSession =
      field.isEmpty || field.first == UInt8(ascii: "-") || field.map(lowercasedASCII).elementsEqual("session".utf8)
    if isSession { return [UInt8(ascii: "0")] }
    let parts = field.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ decimal($0) != nil }) else {
      throw Problem(reason: "its fifth field, the expiry, is no number of seconds since 1970")
    }
    return Array(parts[0])
  }
}
