/// What runs fetches: a ``TransferEngine``, or a simulated network in its place. All calls come on one thread.
package protocol Fetcher: AnyObject {
  /// Seconds that the response to the latest request took to come.
  var lastWait: Double { get }
  func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult
  func cancel(_ id: FetchRequest.ID)
  func use(_ network: NetworkOptions)
  func forget(_ group: FetchRequest.ID)
  func share(_ rates: [SharedRate])
  func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?)
}

extension TransferEngine: Fetcher {}
