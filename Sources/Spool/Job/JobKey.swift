/// A key of the job format (spool.5, JOB FORMAT). ``all`` is the only list of them: readers, writers, `defaults`, the
/// options of `spoolrun add` and the tests of the manual go by it.
package struct JobKey: Sendable {
  /// As it is written before the colon.
  package let name: String
  /// One line of help, as `spoolrun add --help` shows it.
  package let help: String
  /// What the value is called in help and in the manual's synopsis, in lower case: `bytes`.
  package let valueName: String
  /// How `spoolrun add` sets it.
  package let option: OptionForm
  /// All values that it may have; empty where these are too many.
  package let choices: [String]
  /// Whether it may be given several times.
  package let isRepeatable: Bool
  /// Which files may have it.
  package let scope: Scope
  /// Whether it may be written as `name@HOST`.
  let mayNameHost: Bool

  private let read: @Sendable (WrittenValue, inout JobRequest) throws(InvalidValue) -> Void
  fileprivate let written: @Sendable (JobRequest) -> [WrittenValue]
  private let inherit: @Sendable (inout JobRequest, JobRequest) -> Void

  /// Which files may have it.
  package enum Scope: Sendable {
    /// Jobs. It makes no sense for several of them.
    case job
    /// Jobs, and `defaults` for those that do not have it.
    case jobAndDefaults
    /// `defaults`, for the worker itself: see ``NetworkKeys``.
    case defaults
  }

  /// How `spoolrun add` sets it.
  package enum OptionForm: Sendable {
    /// As an argument without a name.
    case argument
    /// `--name VALUE`, and perhaps `-x VALUE`.
    case value(short: Character? = nil)
    /// `--name` alone, for the value `yes`.
    case flag
  }

  /// A key that is given once. A job's own value takes the place of the one in `defaults`.
  init<Value: Sendable>(
    _ name: String, _ path: WritableKeyPath<JobRequest, Value?> & Sendable, _ grammar: ValueGrammar<Value>,
    valueName: String, option: OptionForm = .value(), scope: Scope = .jobAndDefaults, help: String
  ) {
    self.init(name, RequestField(path), grammar, valueName: valueName, option: option, scope: scope, help: help)
  }

  /// The same for a value that is in no field of its own.
  init<Value: Sendable>(
    _ name: String, _ field: RequestField<Value?>, _ grammar: ValueGrammar<Value>,
    valueName: String, option: OptionForm = .value(), scope: Scope = .jobAndDefaults, help: String
  ) {
    self.name = name
    self.help = help
    self.valueName = valueName
    self.option = option
    self.scope = scope
    (isRepeatable, mayNameHost) = (false, false)
    choices = grammar.choices
    read = { (value, request) throws(InvalidValue) in
      if field.get(request) != nil { throw InvalidValue("given twice") }
      field.set(&request, try grammar.read(value))
    }
    written = { request in field.get(request).map { [grammar.write($0)] } ?? [] }
    inherit = { request, defaults in
      if field.get(request) == nil { field.set(&request, field.get(defaults)) }
    }
  }

  /// A key that may be given several times.
  /// - Parameter inheriting: what a job has, of its own values and those in `defaults`.
  init<Value: Sendable>(
    _ name: String, list path: WritableKeyPath<JobRequest, [Value]> & Sendable, _ grammar: ValueGrammar<Value>,
    valueName: String, option: OptionForm = .value(), scope: Scope = .jobAndDefaults, mayNameHost: Bool = false,
    help: String,
    inheriting: @escaping @Sendable ([Value], [Value]) -> [Value] = { own, _ in own }
  ) {
    self.name = name
    self.help = help
    self.valueName = valueName
    self.option = option
    self.scope = scope
    self.mayNameHost = mayNameHost
    isRepeatable = true
    choices = grammar.choices
    let field = RequestField(path)
    read = { (value, request) throws(InvalidValue) in request[keyPath: path].append(try grammar.read(value)) }
    written = { request in field.get(request).map { grammar.write($0) } }
    inherit = { request, defaults in field.set(&request, inheriting(field.get(request), field.get(defaults))) }
  }

  /// The key that `head`, what a line has before its colon, spells, and the host behind its `@`.
  static func find(_ head: Substring) -> (key: JobKey, host: String?)? {
    let parts = head.split(at: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard let key = byName[String(parts[0])], parts.count == 1 || key.mayNameHost else { return nil }
    return (key, parts.count == 2 ? String(parts[1]) : nil)
  }

  /// Those of jobs, of `defaults` and of standing orders.
  fileprivate static let ofFiles = all + ofOrders

  private static let byName = Dictionary(uniqueKeysWithValues: ofFiles.map { ($0.name, $0) })

  /// Takes a value into `request`.
  func set(_ value: WrittenValue, in request: inout JobRequest) throws(Defect) {
    do throws(InvalidValue) {
      if value.text.isEmpty { throw InvalidValue("has no value") }
      try read(value, &request)
    } catch {
      throw Defect(line: value.line, reason: "\(name): \(error.reason)")
    }
  }

  fileprivate func inherit(_ defaults: JobRequest, into request: inout JobRequest) {
    if scope == .jobAndDefaults { inherit(&request, defaults) }
  }
}

extension JobRequest {
  /// Takes in one value as a person gave it.
  package mutating func set(_ key: JobKey, _ text: String) throws(Defect) {
    try key.set(WrittenValue(text: String(trimmed(text[...]))), in: &self)
  }

  /// This request, with the values of `defaults` for keys that it does not give.
  package func inheriting(_ defaults: JobRequest) -> JobRequest {
    var result = self
    // By index, because a copy of each key takes longer than to inherit it.
    for index in JobKey.all.indices { JobKey.all[index].inherit(defaults, into: &result) }
    return result
  }

  /// The job file that asks for this. ``JobText`` reads the same request from it, but for the numbers of lines.
  package var text: String {
    var text = ""
    // By index, because a copy of each key takes longer than to look for its value.
    for index in JobKey.ofFiles.indices {
      for value in JobKey.ofFiles[index].written(self) {
        text += JobKey.ofFiles[index].name
        if let host = value.host { text += "@" + host }
        text += ": "
        text += value.text
        text += "\n"
      }
    }
    return text
  }
}
