internal import ArgumentParser
internal import Spool
internal import SpoolWorker

extension Add {
  /// The request with the name that the server gives.
  /// - Throws: the exit status, after a message.
  func namedByServer(_ request: JobRequest) throws -> JobRequest {
    // The server may want to know who asks. Who may only drop jobs cannot read the defaults.
    let defaults = (try? spool.open().defaults()) ?? JobRequest()
    var named = request
    do throws(Failure) {
      named.output = try RemoteName.output(of: request.inheriting(defaults)) { Terminal.error($0) }
    } catch {
      Terminal.error("--remote-name: \(error.label): \(error.reason); nothing was dropped")
      throw ExitStatus.givenUp.code
    }
    return named
  }
}
