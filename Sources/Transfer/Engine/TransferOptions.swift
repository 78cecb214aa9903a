/// What all fetches of an engine have in common.
package struct TransferOptions: Sendable {
  /// Schemes of URLs that may be fetched; a redirect may lead to `http` and `https` among them only.
  package var protocols: Set<Scheme>
  /// Certificates to trust instead of the system's, PEM (CURLOPT_CAINFO(3)).
  package var caFile: String?
  /// The User-Agent field of requests that give none.
  package var userAgent: String
  /// Bytes to receive in one system call; the sink still gets at most 16 KiB at a time.
  package var bufferSize: Int
  /// Bytes per second of all bodies together, on average; nil for no limit.
  package var bytesPerSecond: UInt64?
  /// Read from the environment once.
  var proxies = ProxyRules.ofEnvironment

  package init(
    protocols: Set<Scheme> = [.http, .https], caFile: String? = nil,
    userAgent: String = "spoolrun", bufferSize: Int = 512 * 1024, bytesPerSecond: UInt64? = nil
  ) {
    self.protocols = protocols
    self.caFile = caFile
    self.userAgent = userAgent
    self.bufferSize = bufferSize
    self.bytesPerSecond = bytesPerSecond
  }
}
