internal import Spool
internal import Transfer

/// Reads the spool's `defaults` again while a worker runs. If they are wrong, those that were read before stay.
@WorkerLoop
struct LiveDefaults {
  private let spool: Spool
  private let environment: JobEnvironment
  /// What was wrong with them when they were last read, and has been reported.
  private var problem: String?

  /// What a look at them found.
  enum Outcome {
    case unchanged
    case changed
    /// Servers are reached differently from now on.
    case changedNetwork
  }

  init(_ spool: Spool, _ environment: JobEnvironment) {
    self.spool = spool
    self.environment = environment
  }

  mutating func read() -> Outcome {
    let current = environment.options.defaults
    let found: JobRequest
    var network: NetworkOptions?
    var warnings: [String] = []
    do {
      found = try spool.defaults()
      if found.network != current.network { network = try found.networkOptions(of: spool) { warnings.append($0) } }
    } catch let error as SpoolError where spool.isLost(error) {
      // That is reported for the whole spool.
      return .unchanged
    } catch {
      let reason = "\(error)"
      if reason != problem {
        environment.log(Event("defaults-invalid", .error, Fields().with("reason", reason)))
      }
      problem = reason
      return .unchanged
    }
    let wasWrong = problem != nil
    problem = nil
    if found == current, !wasWrong { return .unchanged }
    environment.options.defaults = found
    if var network {
      network.authorities = environment.options.authorities ?? network.authorities
      environment.use(network)
    }
    let facts = Fields().with("reason", warnings.isEmpty ? nil : warnings.joined(separator: "; "))
    environment.log(Event("defaults-read", wasWrong || !warnings.isEmpty ? .warning : .info, facts))
    return network == nil ? .changed : .changedNetwork
  }
}

extension JobEnvironment {
  /// Reaches servers differently from the next request on.
  fileprivate func use(_ network: NetworkOptions) {
    options.network = network
    startedEngine?.use(network)
  }
}
