internal import ArgumentParser
internal import Spool
internal import SpoolWorker
internal import Transfer

extension Add {
  /// The request with the name that the server gives.
  /// - Throws: the exit status, after a message.
  func namedByServer(_ request: JobRequest) throws -> JobRequest {
    // A server is not asked by a scheme that the spool's worker refuses.
    try AllowedSchemes(of: spool.open(for: .dropping)).check(request.urls.map(\.text))
    var named = request
    do {
      let (defaults, network) = try networkDefaults()
      // The person has written the scheme. Redirects lead to http and https only.
      let options = TransferOptions(protocols: Set(Scheme.allCases), network: network)
      named.output = try RemoteName.output(of: request.inheriting(defaults), options) { Terminal.error($0) }
    } catch let failure as Failure {
      Terminal.error("--remote-name: \(failure.label): \(failure.reason); nothing was dropped")
      throw ExitStatus.givenUp.code
    } catch {
      Terminal.error("--remote-name: the spool's defaults: \(error); nothing was dropped")
      throw ExitStatus.configuration.code
    }
    return named
  }

  /// The server may want to know who asks. Who may only drop jobs cannot read the defaults.
  private func networkDefaults() throws(Defect) -> (JobRequest, NetworkOptions) {
    guard let spool = try? spool.open(for: .dropping), let defaults = try? spool.defaults() else {
      return (JobRequest(), NetworkOptions())
    }
    return (defaults, try defaults.networkOptions(of: spool) { _ in })
  }
}
