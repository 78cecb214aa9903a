package import Spool
package import Transfer

/// Asks a server how it calls a file, for a person who wants that name. The answer goes into a job before it is
/// dropped; a worker never asks (INTERNALS.md, invariant 12).
@WorkerLoop package struct RemoteName {
  private static let limit = 60

  private let engine: any Fetcher

  /// The output of a job that is to have the server's name, below the directory that the job names.
  /// - Parameter say: gets a line that tells the person what the name is, and whose.
  package nonisolated static func output(
    of request: JobRequest, _ options: TransferOptions, say: (String) -> Void
  ) throws(Failure) -> JobRequest.Line? {
    let answer = try WorkerLoop.run { () async throws(Failure) -> (name: String, isProposed: Bool) in
      let engine: any Fetcher
      do throws(TransferError) { engine = try WorkerLoop.executor.surroundings.makeFetcher(options) } catch {
        throw Failure(.io, error.description)
      }
      return try await RemoteName(engine: engine).ask(request)
    }
    guard let text = request.outputText(named: answer.name), OutputPath.defect(of: text) == nil else {
      throw Failure(.badOutput, "the server's name is no file name")
    }
    say("output: \(escaped(text)) (\(answer.isProposed ? "the server's name" : "the name in the last URL"))")
    return JobRequest.Line(text: text, number: 0)
  }

  /// Asks for the name of what the first URL of a job leads to: by HEAD, or, from servers that refuse that, by a GET
  /// that is given up when its head has come.
  /// - Returns: a name that is safe as a file name, and whether a Content-Disposition states it, and not the URL that
  ///   answered after all redirects.
  private func ask(_ request: JobRequest) async throws(Failure) -> (name: String, isProposed: Bool) {
    guard let url = request.urls.first?.text else { throw Failure(.malformed, "no URL") }
    let parts: URLParts
    do throws(URLProblem) { parts = try URLParts(url) } catch { throw Failure(.malformed, "url: \(error.reason)") }
    var fetch = FetchRequest(
      id: 1, url: parts, headers: request.headers(for: parts), idleTimeoutSeconds: request.idleTimeout)
    (fetch.userAgent, fetch.referer) = (request.userAgent, request.referer)
    (fetch.totalTimeoutSeconds, fetch.wantsHeadOnly) = (Self.limit, true)
    var answer = await answer(to: fetch, parts)
    if Self.mayBeOfHead(answer) {
      (fetch.id, fetch.wantsHeadOnly) = (2, false)
      answer = await self.answer(to: fetch, parts)
    }
    let response = try answer.get()
    if case .refused(let refusal) = response.content { throw Failure(refusal, from: parts, mayPass: false) }
    if let name = response.proposedName.flatMap({ PayloadName.cleaned($0) }) { return (name, true) }
    guard let name = response.url.lastPathSegment.flatMap({ PayloadName.cleaned($0) }) else {
      throw Failure(.badOutput, "\(response.url.host) names no file, and the URL does not end in a file name")
    }
    return (name, false)
  }

  /// Whether the server may answer a GET better: signed links are for one method, some servers know no HEAD and have
  /// many ways to say so.
  private static func mayBeOfHead(_ answer: Result<Response, Failure>) -> Bool {
    switch answer {
    case .success(let response): if case .refused = response.content { response.retryAfter == nil } else { false }
    case .failure(let failure): [.cut, .badResponse].contains(failure.code)
    }
  }

  private func answer(to request: FetchRequest, _ url: URLParts) async -> Result<Response, Failure> {
    let sink = HeadSink()
    let result = await engine.fetch(request, into: sink)
    if let response = sink.response { return .success(response) }
    if case .failed(let failure) = result.end { return .failure(Failure(failure, isLoopback: url.isLoopback)) }
    return .failure(Failure(.badResponse, "\(url.host) did not answer"))
  }
}

private final class HeadSink: FetchSink {
  private(set) var response: Response?

  func accept(_ response: Response) -> Bool {
    self.response = response
    return false
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool { false }
  /// ``accept(_:)`` ends the fetch; before it, nothing has come.
  var hasAll: Bool { false }
}
