internal import Spool
internal import Transfer

/// What fetches ask of the attempt that they are for.
@WorkerLoop protocol FetchContext {
  var options: WorkerOptions { get }
  var memory: MemoryBudget { get }
  /// The id of the first request.
  var requests: UInt64 { get }
  func engine() throws(TransferError) -> any Fetcher
  /// Whether a mirror may be asked beside the first one.
  func takesPart(_ mirror: MirrorURL) -> Bool
  /// Whether the mirror's server may get more connections than one.
  func bearsMore(_ mirror: MirrorURL) -> Bool
  func hasRefusedConnection(_ mirror: MirrorURL, _ failure: Failure)
  /// - Parameter isOfOther: whether a redirect led to the server that failed.
  /// - Returns: the failure as it is to be told.
  func judged(_ failure: Failure, isOfOther: Bool, _ mirror: MirrorURL) -> Failure
  func log(_ event: String, _ fields: Fields)
}
