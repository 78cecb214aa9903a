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

  /// - Parameter file: see ``CookieFile``.
  /// - Returns: nil if there is no memory.
  init?(file: String?) {
    guard let share = ccurl_share_cookies() else { return nil }
    self.share = share
    guard let file else { return }
    guard let handle = EasyHandle() else { return nil }
    var setup = EasyOptions(handle)
    attach(&setup)
    for cookie in CookieFile.cookies(in: file) { setup.bytes(CURLOPT_COOKIELIST, cookie) }
    if setup.code != CURLE_OK { return nil }
  }

  deinit { ccurl_share_cleanup(share) }

  /// Has a transfer send and take cookies. Its handle must not be used for another one.
  func attach(_ setup: inout EasyOptions) {
    setup.pointer(CURLOPT_SHARE, share)
    // No file: it turns libcurl's cookies on.
    setup.string(CURLOPT_COOKIEFILE, "")
  }

  /// A line of a head.
  func note(_ line: UnsafeRawBufferPointer) {
    let name = "set-cookie:".utf8
    guard line.count > name.count, zip(line, name).allSatisfy({ lowercasedASCII($0) == $1 }) else { return }
    bytesSet += line.count
  }

  var isUsable: Bool { bytesSet <= Self.limit }
}

/// The cookies of all groups of fetches that run.
struct CookieJars {
  private var jars: [FetchRequest.ID: CookieJar] = [:]

  /// The jar of a request.
  /// - Returns: nil if it uses no cookies.
  /// - Throws: if there is no memory.
  mutating func jar(for request: FetchRequest, _ use: NetworkOptions.CookieUse) throws(TransferFailure) -> CookieJar? {
    guard case .session(let file) = use else { return nil }
    if let jar = request.group.flatMap({ jars[$0] }) { return jar }
    guard let jar = CookieJar(file: file) else { throw TransferFailure(code: .outOfMemory, message: "out of memory") }
    if let group = request.group { jars[group] = jar }
    return jar
  }

  mutating func remove(_ group: FetchRequest.ID) { jars[group] = nil }
}
