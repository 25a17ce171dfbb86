; Return whether no trace is open, the settings have the Record's version, and the call has as many arguments as the
; Record, by the same keyword names. Version -1 accepts every state of the gate.
; kwnames: a tuple of interned names, or null. Names are compared by address.

define internal i1 @tracer.fits(ptr %record, i64 %nargs, ptr %kwnames) {
  %closed = load atomic i64, ptr @tracer_gate monotonic, align 8
  %version.at = getelementptr i8, ptr @tracer_gate, i64 8
  %version = load atomic i64, ptr %version.at monotonic, align 8
  %known = field i64 %record Record.version
  %positional = field i64 %record Record.positional
  %always = icmp eq i64 %known, -1
  %is.open = icmp eq i64 %closed, 0
  %same.settings = icmp eq i64 %version, %known
  %same.count = icmp eq i64 %nargs, %positional
  %ok = and i1 %is.open, %same.settings
  %ok.state = or i1 %ok, %always
  %ok.count = and i1 %ok.state, %same.count
  br i1 %ok.count, label %names, label %no
names:
  %keywords = field i64 %record Record.keywords
  %none.given = icmp eq ptr %kwnames, null
  br i1 %none.given, label %nameless, label %count
nameless:
  %none.wanted = icmp eq i64 %keywords, 0
  ret i1 %none.wanted
count:
  %given = field i64 %kwnames Tuple.size
  %as.many = icmp eq i64 %given, %keywords
  br i1 %as.many, label %start, label %no
start:
  %wanted.tuple = field ptr %record Record.names
  %given.items = getelementptr i8, ptr %kwnames, i64 Tuple.item0
  %wanted.items = getelementptr i8, ptr %wanted.tuple, i64 Tuple.item0
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %compare ]
  %more = icmp ult i64 %i, %keywords
  br i1 %more, label %compare, label %yes
compare:
  %given.at = getelementptr ptr, ptr %given.items, i64 %i
  %wanted.at = getelementptr ptr, ptr %wanted.items, i64 %i
  %name = load ptr, ptr %given.at
  %wanted = load ptr, ptr %wanted.at
  %equal = icmp eq ptr %name, %wanted ; names in calls are interned
  %next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
