/// What all fetches of an engine have in common.
package struct TransferOptions: Sendable {
  /// Schemes of URLs that may be fetched; a redirect may lead to `http` and `https` among them only.
  package var protocols: Set<Scheme>
  /// How servers are reached.
  package var network: NetworkOptions
  /// The User-Agent field of requests that give none.
  package var userAgent: String
  /// Bytes to receive in one system call; the sink still gets at most 16 KiB at a time.
  package var bufferSize: Int
  /// Bytes per second of all bodies together, on average; nil for no limit.
  package var bytesPerSecond: UInt64?

  /// Without arguments: HTTP alone, without a limit.
  package init(
    protocols: Set<Scheme> = [.http, .https], network: NetworkOptions = NetworkOptions(),
    userAgent: String = "spoolrun", bufferSize: Int = 512 * 1024, bytesPerSecond: UInt64? = nil
  ) {
    self.protocols = protocols
    self.network = network
    self.userAgent = userAgent
    self.bufferSize = bufferSize
    self.bytesPerSecond = bytesPerSecond
  }
}
